// Package throughput measures how many pods a second a deployed scheduler binds: the one that Platform9's article deploys
// (kube-scheduler's own client limits, 50 queries a second with a burst of 100) and the one that pmk-sched deploys by default.
package throughput

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	branch = "v1.24.3"
	lab    = "bench"
	nodes  = 500
	pods   = 1000
)

// stock is the configuration of kube-scheduler's defaults, spelled out, because pmk-sched raises the limits unless told.
const stock = `apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
clientConnection: {qps: 50, burst: 100}
`

func BenchmarkThroughput(b *testing.B) {
	dir := b.TempDir()
	program := filepath.Join(dir, "pmk-sched")
	do(b, exec.Command("go", "build", "-o", program, "../../../cmd/pmk-sched"))
	b.Cleanup(func() { do(b, exec.Command(program, "lab", "down", "--name", lab)) })
	do(b, exec.Command(program, "lab", "up", "--name", lab, "--branch", branch, "--layout", "kubeadm", "--nodes", fmt.Sprint(nodes)))
	onMaster := func(args ...string) {
		do(b, exec.Command(program, append([]string{"lab", "exec", "--name", lab, "--", program}, args...)...))
	}
	image := "localhost/my-scheduler:" + branch
	onMaster("build", "--branch", branch, "--busybox", "/bin/busybox", "--tag", image, "--load", "containerd")
	config := filepath.Join(dir, "stock.yaml")
	if err := os.WriteFile(config, []byte(stock), 0o600); err != nil {
		b.Fatal(err)
	}
	client := connect(b, program)

	rates := map[string]float64{}
	for _, side := range []struct {
		name string
		args []string
	}{
		{"stock", []string{"--config", config}},
		{"ours", nil},
	} {
		b.Run(side.name, func(b *testing.B) {
			onMaster(append([]string{"deploy", "--name", side.name, "--image", image}, side.args...)...)
			for b.Loop() {
				rates[side.name] = measure(b, client, side.name)
			}
			b.ReportMetric(rates[side.name], "pods/s")
			b.ReportMetric(rates[side.name]/rates["stock"], "x-stock")
			onMaster("uninstall", "--name", side.name, "--yes")
		})
	}
}

// measure makes all pods pending while the scheduler is scaled to nothing, so that creating them is not what is measured, then
// starts it and counts from the first pod bound to the last.
func measure(b *testing.B, client kubernetes.Interface, scheduler string) float64 {
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	namespace, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "throughput-"}}, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	ns := namespace.Name
	defer func() {
		zero := int64(0)
		_ = client.CoreV1().Pods(ns).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &zero}, metav1.ListOptions{})
		_ = client.CoreV1().Namespaces().Delete(ctx, ns, metav1.DeleteOptions{})
	}()
	scale(ctx, b, client, scheduler, 0)
	createPods(ctx, b, client, ns, scheduler)

	events, err := client.CoreV1().Pods(ns).Watch(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
	if err != nil {
		b.Fatal(err)
	}
	defer events.Stop()
	scale(ctx, b, client, scheduler, 1)

	bound := map[string]bool{}
	var first time.Time
	for event := range events.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok || event.Type == watch.Deleted {
			continue
		}
		if len(bound) == 0 {
			first = time.Now()
		}
		bound[pod.Name] = true
		if len(bound) == pods {
			return float64(pods) / time.Since(first).Seconds()
		}
	}
	b.Fatalf("%s bound only %d of %d pods", scheduler, len(bound), pods)
	return 0
}

func createPods(ctx context.Context, b *testing.B, client kubernetes.Interface, ns, scheduler string) {
	b.Helper()
	no := false
	var group errgroup.Group
	group.SetLimit(20)
	for i := range pods {
		group.Go(func() error {
			_, err := client.CoreV1().Pods(ns).Create(ctx, &corev1.Pod{
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

// scale sets the replicas of a deployed scheduler and waits until no more and no fewer of its pods are there.
func scale(ctx context.Context, b *testing.B, client kubernetes.Interface, scheduler string, replicas int32) {
	b.Helper()
	deployments := client.AppsV1().Deployments("kube-system")
	current, err := deployments.GetScale(ctx, scheduler, metav1.GetOptions{})
	if err != nil {
		b.Fatal(err)
	}
	current.Spec.Replicas = replicas
	if _, err := deployments.UpdateScale(ctx, scheduler, current, metav1.UpdateOptions{}); err != nil {
		b.Fatal(err)
	}
	for replicas == 0 {
		list, err := client.CoreV1().Pods("kube-system").List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + scheduler})
		if err != nil {
			b.Fatal(err)
		}
		if len(list.Items) == 0 {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func connect(b *testing.B, program string) kubernetes.Interface {
	b.Helper()
	kubeconfig, err := exec.Command(program, "lab", "kubeconfig", "--name", lab).Output()
	if err != nil {
		b.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		b.Fatal(err)
	}
	config.QPS, config.Burst = 5000, 5000
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	return client
}

func do(b *testing.B, cmd *exec.Cmd) {
	b.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
}
