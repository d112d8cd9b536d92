//go:build linux && cases

package commands

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/deploy/verify"
)

func TestVerifyExplainsPendingPod(t *testing.T) {
	t.Parallel()
	nothing := func(context.Context, *corev1.Pod) error { return nil }
	t.Run("no scheduler", func(t *testing.T) {
		ctx := testContext(t)
		play(ctx, t, "absent", nothing)
		_, err := verify.Scheduler(ctx, server.Config(),
			verify.Options{Name: "absent", Namespace: "default", Image: "localhost/pause:1", Timeout: 4 * time.Second})
		var not *verify.NotScheduledError
		if !errors.As(err, &not) {
			t.Fatalf("error is %v", err)
		}
		const cause = "the pod names scheduler absent, which was not found: "
		want := "scheduler absent did not bind Pod/" + not.Pod + ": it is Pending after 4s: " + cause
		if !strings.HasPrefix(err.Error(), want) || len(not.Findings) != 1 || !strings.HasPrefix(not.Findings[0], cause) ||
			len(not.Log) > 0 {
			t.Errorf("error is %v", err)
		}
		if left := leftovers(t, "absent"); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	t.Run("no fitting node", func(t *testing.T) {
		ctx := testContext(t)
		said := false
		play(ctx, t, "busy", func(ctx context.Context, pod *corev1.Pod) error {
			if said {
				return nil
			}
			said = true
			return newEvent(t, "FailedScheduling", "busy", "busy-1")(ctx, pod)
		})
		_, err := verify.Scheduler(ctx, server.Config(),
			verify.Options{Name: "busy", Namespace: "default", Image: "localhost/pause:1", Timeout: 10 * time.Second})
		var not *verify.NotScheduledError
		if !errors.As(err, &not) {
			t.Fatalf("error is %v", err)
		}
		const message = "message of the scheduler: 0/1 nodes are available: 1 Insufficient cpu."
		if !strings.HasPrefix(not.Reason, "it is Pending after 10s: 1 node") || !slices.Contains(not.Findings, message) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("scheduler that cannot", func(t *testing.T) {
		ctx := testContext(t)
		ns := server.Namespace(t)
		deployed(ctx, t, "broken", ns, "")
		holder, seconds, old := "master_1", int32(15), metav1.MicroTime{Time: time.Now().Add(-time.Hour)}
		leases := server.Client(t).CoordinationV1().Leases(ns)
		expired, err := leases.Get(ctx, "broken", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		expired.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &old}
		if _, err := leases.Update(ctx, expired, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		play(ctx, t, "broken", nothing)
		_, err = verify.Scheduler(ctx, server.Config(),
			verify.Options{Name: "broken", Namespace: ns, Image: "localhost/pause:1", Timeout: 4 * time.Second})
		var not *verify.NotScheduledError
		if !errors.As(err, &not) {
			t.Fatalf("error is %v", err)
		}
		account := "system:serviceaccount:" + ns + ":broken"
		const down = "scheduler broken does not schedule: "
		lease := "Lease/" + ns + "/broken was not renewed by master for 1h0m"
		if !strings.HasPrefix(not.Reason, "it is Pending after 4s: "+down) || !strings.Contains(not.Reason, lease) {
			t.Errorf("error is %v", err)
		}
		want := []string{
			"Pod/" + ns + "/broken-1: not ready: Pending",
			"permissions: " + account + " cannot list storageclasses.storage.k8s.io",
			"permissions: " + account + " cannot update leases.coordination.k8s.io broken in namespace " + ns,
		}
		// The findings before these are about the nodes of other tests.
		if diff := cmp.Diff(want, not.Findings[max(0, len(not.Findings)-len(want)):]); diff != "" {
			t.Errorf("findings (-want +got):\n%s", diff)
		}
	})
}
