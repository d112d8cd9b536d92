//go:build linux

// Package throughput measures how many pods a second a deployed scheduler binds, deployed with the manifests of Platform9's
// article and with pmk-sched by default.
package throughput

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const (
	workers = 500
	pods    = 1000
	// rounds is how often each side is measured. The sides take turns, so that what else the machine does affects both; the median counts.
	rounds = 5
)

// article are the manifests of the article, with two placeholders.
//
//go:embed testdata/article.yaml
var article string

func TestMain(m *testing.M) { os.Exit(labs.Main(m)) }

func BenchmarkThroughput(b *testing.B) {
	n := labs.Start(b, labs.Options{Release: labs.Release, Layout: "pmk", Workers: workers})
	n.Config.QPS, n.Config.Burst = 5000, 5000
	image := n.Image(b)
	kubeconfig := n.Shell(b, "kubectl config view --raw --flatten --kubeconfig /etc/pf9/kube.d/kubeconfigs/kube-scheduler.yaml")
	indented := "    " + strings.ReplaceAll(strings.TrimSpace(kubeconfig), "\n", "\n    ")
	n.Apply(b, strings.NewReplacer("KUBECONFIG\n", indented+"\n", "image: IMAGE", "image: "+image).Replace(article))
	n.Kubectl(b, "rollout", "status", "deployment/my-scheduler", "-n", "kube-system", "--timeout=5m")
	n.PMKSched(b, "deploy", "--name", "pmk-sched", "--image", image).OK(b)
	sides := []string{"my-scheduler", "pmk-sched"}
	for _, side := range sides {
		scale(b, n, side, 0)
	}
	rates := map[string][]float64{}
	for b.Loop() {
		for range rounds {
			for _, side := range sides {
				rates[side] = append(rates[side], measure(b, n, side))
			}
		}
	}
	median := func(side string) float64 {
		slices.Sort(rates[side])
		return rates[side][len(rates[side])/2]
	}
	for _, side := range sides {
		b.Logf("%s: %.0f pods/s", side, rates[side])
	}
	b.ReportMetric(median("my-scheduler"), "article-pods/s")
	b.ReportMetric(median("pmk-sched"), "pmk-sched-pods/s")
	b.ReportMetric(median("pmk-sched")/median("my-scheduler"), "x-article")
}

// measure makes all pods pending while the scheduler has no replica, so that creating them is not measured, then starts it and counts
// from the first pod that is bound to the last.
func measure(b *testing.B, n *labs.Node, scheduler string) float64 {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	namespace, err := n.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "throughput-"}}, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	ns := namespace.Name
	createPods(ctx, b, n, ns, scheduler)
	events := controlplane.WatchBound(ctx, b, n.Kube, ns)
	scale(b, n, scheduler, 1)
	defer scale(b, n, scheduler, 0)
	defer remove(ctx, b, n, ns)
	rate, bound := controlplane.BindingRate(events, pods)
	if bound < pods {
		b.Fatalf("%s bound only %d of %d pods", scheduler, bound, pods)
	}
	return rate
}

func createPods(ctx context.Context, b *testing.B, n *labs.Node, ns, scheduler string) {
	b.Helper()
	no := false
	var group errgroup.Group
	group.SetLimit(20)
	for i := range pods {
		group.Go(func() error {
			_, err := n.Kube.CoreV1().Pods(ns).Create(ctx, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%04d", i)},
				Spec: corev1.PodSpec{
					SchedulerName:                scheduler,
					AutomountServiceAccountToken: &no,
					Containers:                   []corev1.Container{{Name: "main", Image: "localhost/none:v1"}},
				},
			}, metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}

// remove deletes all pods and waits until they are gone, so that the next side finds the same cluster.
func remove(ctx context.Context, b *testing.B, n *labs.Node, ns string) {
	b.Helper()
	zero := int64(0)
	if err := n.Kube.CoreV1().Pods(ns).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &zero}, metav1.ListOptions{}); err != nil {
		b.Fatal(err)
	}
	run.Eventually(b, "the pods are gone", func(ctx context.Context) (bool, string) {
		list, err := n.Kube.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{Limit: 1})
		return err == nil && len(list.Items) == 0, fmt.Sprint(err)
	})
}

// scale sets the replicas of a deployed scheduler; with 0 it waits until its pods are gone.
func scale(b *testing.B, n *labs.Node, scheduler string, replicas int) {
	b.Helper()
	n.Kubectl(b, "scale", "deployment/"+scheduler, "-n", "kube-system", fmt.Sprintf("--replicas=%d", replicas))
	if replicas > 0 {
		return
	}
	run.Eventually(b, "the scheduler is gone", func(ctx context.Context) (bool, string) {
		list, err := n.Kube.CoreV1().Pods("kube-system").List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, pod := range list.Items {
			if strings.HasPrefix(pod.Name, scheduler+"-") {
				return false, pod.Name
			}
		}
		return true, ""
	})
}
