//go:build linux && labs

package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/controller"
	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// followed is the CustomScheduler whose scheduler follows the releases of its cluster, and home is
// its namespace.
const (
	followed = "followed"
	home     = controller.DefaultNamespace
)

// The controller runs in a cluster of kubeadm that is upgraded twice. Its scheduler gets the image
// for the new release without a command. The test logs how long that takes after the API server
// reports the release, and the longest wait of a pod of this scheduler and of the default scheduler
// in the same upgrade.
func TestControllerFollowsTheReleaseOfItsCluster(t *testing.T) {
	releases := []string{"v1.28.15", "v1.29.2", "v1.30.14"}
	n := labs.Start(t, labs.Options{Release: releases[0], Layout: lab.LayoutKubeadm, Workers: 3})
	var items []string
	for _, release := range releases {
		n.Load(t, imageOf(release), "--branch", release)
		items = append(items, fmt.Sprintf("{minor: %q, release: %s, image: %q, configuration: {apiVersion: %s, kind: %s}}",
			release[1:5], release, imageOf(release), "kubescheduler.config.k8s.io/v1", "KubeSchedulerConfiguration"))
	}
	n.Load(t, "localhost/pmk-sched:test", "self")
	// The simulated workers would play the controller.
	n.Kubectl(t, "taint", "nodes", "-l", "type=kwok", "simulated=:NoSchedule")
	n.PMKSched(t, "controller", "render", "--image", "localhost/pmk-sched:test", "--to-file", "/root/controller.yaml").OK(t)
	n.Kubectl(t, "apply", "-f", "/root/controller.yaml")
	n.Kubectl(t, "wait", "--for=condition=Established", "crd/customschedulers.pmk-sched.io")
	n.Apply(t, "apiVersion: pmk-sched.io/v1alpha1\nkind: CustomScheduler\nmetadata: {name: "+followed+
		", namespace: "+home+"}\nspec: {releases: {items: ["+strings.Join(items, ", ")+"]}}")
	run.Eventually(t, "the first release is deployed", func(ctx context.Context) (bool, string) {
		return isFollowed(ctx, n, releases[0])
	})

	for _, release := range releases[1:] {
		ctx, stop := context.WithCancel(t.Context())
		waits := map[string]<-chan time.Duration{}
		for _, scheduler := range []string{followed, corev1.DefaultSchedulerName} {
			waits[scheduler] = n.LongestWait(ctx, t, scheduler)
		}
		behind := timeBehind(t, n, release)
		run.PMKLab(t, "upgrade", "--name", n.Name, "--branch", release).OK(t)
		n.AwaitReady(t)
		run.Eventually(t, "the scheduler has the image for "+release, func(ctx context.Context) (bool, string) {
			return isFollowed(ctx, n, release)
		})
		after := <-behind
		stop()
		t.Logf("%s: image %s after the API server; longest wait of a pod: %s %s, default scheduler %s", release,
			after.Round(time.Second), followed, (<-waits[followed]).Round(time.Millisecond),
			(<-waits[corev1.DefaultSchedulerName]).Round(time.Millisecond))
		n.PMKSched(t, "verify", "--name", followed, "-n", home).OK(t)
		n.PMKSched(t, "status").OK(t)
	}
	n.PMKSched(t, "history", "--name", followed, "-n", home).OK(t).Prints(t, releases[0], releases[1], releases[2])
	n.Kubectl(t, "delete", "customscheduler", "-n", home, followed)
	n.LeftNothing(t, followed)
}

func imageOf(release string) string { return "localhost/" + followed + ":" + release }

// isFollowed reports whether the scheduler runs with the image for a release, and the object is
// ready.
func isFollowed(ctx context.Context, n *labs.Node, release string) (ok bool, seen string) {
	d, err := n.Kube.AppsV1().Deployments(home).Get(ctx, followed, metav1.GetOptions{})
	if err != nil {
		return false, err.Error()
	}
	image := d.Spec.Template.Spec.Containers[0].Image
	var object struct {
		Status struct{ Conditions []metav1.Condition }
	}
	text, err := n.Kube.AppsV1().RESTClient().Get().AbsPath("/apis/pmk-sched.io/v1alpha1/namespaces", home,
		"customschedulers", followed).DoRaw(ctx)
	if err == nil {
		err = json.Unmarshal(text, &object)
	}
	ready := meta.IsStatusConditionTrue(object.Status.Conditions, v1alpha1.ConditionReady) &&
		meta.IsStatusConditionTrue(object.Status.Conditions, v1alpha1.ConditionReleaseMatched)
	return err == nil && image == imageOf(release) && ready && d.Status.UpdatedReplicas == *d.Spec.Replicas &&
			d.Status.AvailableReplicas == *d.Spec.Replicas,
		fmt.Sprintf("%s %+v %v %v", image, d.Status, object.Status.Conditions, err)
}

// timeBehind sends how long after the API server reported a release the scheduler had its image.
func timeBehind(t *testing.T, n *labs.Node, release string) <-chan time.Duration {
	behind := make(chan time.Duration, 1)
	go func() {
		defer close(behind)
		reported := time.Time{}
		for ctx := t.Context(); ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
			if reported.IsZero() {
				if v, err := n.Kube.Discovery().ServerVersion(); err == nil && v.GitVersion == release {
					reported = time.Now()
				}
			} else if ok, _ := isFollowed(ctx, n, release); ok {
				behind <- time.Since(reported)
				return
			}
		}
	}()
	return behind
}
