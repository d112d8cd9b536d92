//go:build linux

package schedulers

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/explain"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// checkEvicted explains a pod that a scheduler has evicted: when it is gone, and when another one
// has its name.
func (s scene) checkEvicted(t *testing.T) {
	t.Helper()
	const group = "explain-evicted"
	ctx := run.Context(t)
	s.Namespace(ctx, t, group)
	s.Nodes(ctx, t, group, group+"-1")
	s.PriorityClass(ctx, t, group, 1000)
	s.Place(ctx, t, group, controlplane.Filling(controlplane.Pod(second, group, "db-0")))
	high := controlplane.Filling(controlplane.Pod(second, group, "high"))
	high.Spec.PriorityClassName = group
	s.Create(ctx, t, group, high)
	s.explained(t, group, "db-0", func(r explain.Report) bool {
		return r.State == explain.Missing && len(r.Findings) > 0 && isPreempted(r.Findings[0], group)
	})
	s.explained(t, group, "db", func(r explain.Report) bool { // its workload
		return r.State == explain.Missing && len(r.Findings) > 0 && isPreempted(r.Findings[0], group)
	})
	again := controlplane.Pod(second, group, "db-0")
	s.Place(ctx, t, group, again)
	s.explained(t, group, "db-0", func(r explain.Report) bool {
		last := r.Findings[len(r.Findings)-1]
		return r.State == explain.Bound && r.Findings[0].Cause == explain.Scheduled && isPreempted(last, group) &&
			strings.HasPrefix(last.Text, "a former pod of this name")
	})
	if _, err := s.Kube.CoreV1().Pods(group).Get(ctx, "high", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// isPreempted reports whether a finding says that the pod high of a namespace took the room.
func isPreempted(f explain.Finding, namespace string) bool {
	return f.Cause == explain.Preempted && strings.Contains(f.Text, "scheduler "+second+" evicted pod db-0") &&
		strings.Contains(f.Text, "pod "+namespace+"/high of higher priority")
}

// explained waits until `explain` answers as expected.
func (s scene) explained(t *testing.T, namespace, pod string, met func(explain.Report) bool) {
	t.Helper()
	run.Eventually(t, "the eviction of "+pod+" is explained", func(context.Context) (bool, string) {
		got := run.PMKSched(t, "--kubeconfig", s.Kubeconfig, "explain", "-n", namespace, "-o", "json", pod)
		if got.Code != 0 {
			return false, got.Stderr
		}
		report := run.Decode[explain.Report](t, got.Stdout)
		return met(report), fmt.Sprintf("%+v", report)
	})
}
