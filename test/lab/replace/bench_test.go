//go:build linux

package replace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
)

const (
	// rounds is how often each layout is measured, unless ROUNDS is set.
	rounds = 5
	// pace is how often a pod is created while the default scheduler is replaced.
	pace = 100 * time.Millisecond
)

// others are the release of PMK's public node agent, and the newest, whose kubelet detects no
// change in a container except for its image.
var others = []labs.Options{
	{Release: "v1.21.3", Layout: lab.LayoutPMK, Workers: 3}, {Release: "v1.37.1", Layout: lab.LayoutKubeadm, Workers: 3},
}

// Limits of the longest waits, in seconds: a third of the lease of 15 s where a kube-scheduler
// releases it when it ends, and twice the lease where it does not.
const (
	mostReleased, mostLeased = 5.0, 30.0
	page                     = "docs/replace.md"
)

// BenchmarkReplace measures how long pods wait while the default scheduler is replaced and
// restored, on each layout. The figures are in docs/replace.md.
func BenchmarkReplace(b *testing.B) {
	for _, layout := range []string{lab.LayoutKubeadm, lab.LayoutPMK} {
		b.Run(layout, func(b *testing.B) {
			replaced, restored := measure(b, exclusive(b, layout))
			claim := samples.Claim(page, "| kubeadm | 0.7 / 0.9 | 0.7 / 0.9 | 0.6 / 0.7 |")
			if layout == lab.LayoutPMK {
				claim = samples.Claim(page, "| PMK | 0.7 / 0.8 | 0.8 / 0.8 | 0.9 / 16.0 |")
			}
			claim.AtMost(b, "seconds during replace", slices.Max(replaced), mostReleased)
			claim.AtMost(b, "seconds during restore, p50", restored.Median(), mostReleased)
			claim.AtMost(b, "seconds during restore", slices.Max(restored), mostLeased)
			samples.Claim(page, "as long as a lease that was not released lasts (15 s); in the others at most 0.9 s").
				AtMost(b, "rounds of restore that wait for the lease", above(restored, mostReleased)/float64(len(restored)), 0.4)
		})
	}
}

// above returns how many samples are above a limit.
func above(set samples.Set, limit float64) (count float64) {
	for _, sample := range set {
		if sample > limit {
			count++
		}
	}
	return count
}

func BenchmarkReplaceOtherReleases(b *testing.B) {
	for _, o := range others {
		b.Run(o.Layout+"-"+o.Release, func(b *testing.B) {
			replaced, restored := measure(b, prepare(b, labs.Start(b, o), manifests[o.Layout]))
			claim, most := samples.Claim(page, "| v1.37.1, kubeadm | 0.3 / 0.4 | 0.4 / 0.4 | 0.4 / 0.5 |"), mostReleased
			if o.Layout == lab.LayoutPMK {
				claim, most = samples.Claim(page, "The scheduler of v1.21.3 does not release its lease"), mostLeased
			}
			claim.AtMost(b, "seconds during replace", slices.Max(replaced), most)
			claim.AtMost(b, "seconds during restore", slices.Max(restored), most)
		})
	}
}

// measure replaces and restores. It reports the longest wait of a pod in each round, and the time
// without a scheduler that replace reports.
func measure(b *testing.B, n *node) (replaced, restored samples.Set) {
	b.Helper()
	image := n.Image(b, "timestamp")
	var reported samples.Set
	for b.Loop() {
		for range samples.Rounds(b, rounds) {
			n.forgetRestarts(b)
			var got outcome
			replaced = append(replaced, n.longestWait(b, func() {
				got = run.Decode[outcome](b, n.replace(b, "--image", image, "-o", "json").OK(b).Stdout)
			}))
			if got.SecondsWithoutScheduler <= 0 {
				b.Errorf("replace reports %.1f s without a scheduler", got.SecondsWithoutScheduler)
			}
			reported = append(reported, got.SecondsWithoutScheduler)
			n.forgetRestarts(b)
			restored = append(restored, n.longestWait(b, func() { n.PMKSched(b, "restore", "--yes").OK(b) }))
		}
	}
	b.Logf("longest wait while replacing %.2f s, while restoring %.2f s; without a scheduler as reported %.2f s",
		replaced, restored, reported)
	replaced.ReportMedian(b, "replace-longest-wait", "s")
	restored.ReportMedian(b, "restore-longest-wait", "s")
	reported.ReportMedian(b, "replace-reported", "s")
	return replaced, restored
}

// longestWait creates pods while do runs, and returns the longest time in seconds from the request
// for a pod until it is bound.
func (n *node) longestWait(b *testing.B, do func()) float64 {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.Context()), run.Patience)
	defer cancel()
	bound := controlplane.WatchBound(ctx, b, n.Kube, metav1.NamespaceDefault)
	creating, stop := context.WithCancel(ctx)
	defer stop()
	requests := make(chan request)
	var all errgroup.Group
	all.Go(func() error {
		defer close(requests)
		err := n.createPods(creating, requests)
		if err != nil {
			cancel()
		}
		return err
	})
	var longest time.Duration
	all.Go(func() (err error) {
		longest, err = n.awaitBound(ctx, requests, bound)
		return err
	})
	do()
	stop()
	if err := all.Wait(); err != nil {
		b.Fatal(err)
	}
	return longest.Seconds()
}

// request is the request for a pod, and its time.
type request struct {
	name string
	at   time.Time
}

// createPods creates pods until ctx ends, and sends each request before it is made.
func (n *node) createPods(ctx context.Context, requests chan<- request) error {
	no := false
	for i := 0; clock.Sleep(ctx, pace) == nil; i++ {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("waits-%d-%d", time.Now().UnixNano(), i)},
			Spec: corev1.PodSpec{
				NodeSelector: map[string]string{"type": "kwok"},
				// kwok may not renew the leases of its nodes in time while the kubelet is restarted.
				Tolerations:                  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				AutomountServiceAccountToken: &no,
				Containers:                   []corev1.Container{{Name: "main", Image: "localhost/none:v1"}},
			},
		}
		select {
		case requests <- request{pod.Name, time.Now()}:
		case <-ctx.Done():
			return nil
		}
		// The request is finished also when ctx ends meanwhile.
		finishing := context.WithoutCancel(ctx)
		if _, err := n.Kube.CoreV1().Pods(metav1.NamespaceDefault).Create(finishing, pod,
			metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create a pod: %w", err)
		}
	}
	return nil
}

// awaitBound returns the longest wait of the requested pods. It deletes each one when it is bound,
// because the workers have room for some hundred.
func (n *node) awaitBound(
	ctx context.Context, requests <-chan request, bound <-chan watch.Event,
) (longest time.Duration, err error) {
	var deletions errgroup.Group
	defer func() { err = errors.Join(err, deletions.Wait()) }()
	waiting := map[string]time.Time{}
	for requests != nil || len(waiting) > 0 {
		select {
		case r, open := <-requests:
			if !open {
				requests = nil
				break
			}
			waiting[r.name] = r.at
		case event, open := <-bound:
			if !open {
				return 0, fmt.Errorf("%d pods have no node: %w", len(waiting), context.Cause(ctx))
			}
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || waiting[pod.Name].IsZero() {
				break
			}
			longest = max(longest, time.Since(waiting[pod.Name]))
			delete(waiting, pod.Name)
			deletions.Go(func() error {
				now := int64(0)
				options := metav1.DeleteOptions{GracePeriodSeconds: &now}
				return n.Kube.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, options)
			})
		}
	}
	return longest, nil
}
