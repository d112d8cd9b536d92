//go:build linux

package cost

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
)

const (
	// The profiles of a scheduler.
	bundled, native = "bundled", "native"
	// profileSeconds is how long a part of the profile is.
	profileSeconds = 5
	// The scheduler does not start to schedule while the benchmark has its lease.
	lease, leaseNamespace = "cost", metav1.NamespaceSystem
	patience              = 15 * time.Minute
)

// measure makes all pods pending and lets the scheduler fill its caches before it schedules the
// first one. It returns the CPU time of each plugin until all pods are bound, for each pod.
func (x *bench) measure(b *testing.B, p pair) map[string]time.Duration {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	x.createPods(ctx, b, p)
	defer x.deletePods(ctx, b)
	x.hold(ctx, b)
	process, s := x.start(ctx, b, p)
	defer process.Kill()
	x.release(ctx, b)
	var parts [][]byte // parsed in the end, since the time between two parts is not measured
	for pending := -1; pending != 0; pending = x.pending(ctx, b, process) {
		parts = append(parts, s.profile(ctx, b, profileSeconds))
	}
	sums := map[string]time.Duration{}
	for _, part := range parts {
		for profile, taken := range attribute(b, traces(ctx, b, part)) {
			sums[profile] += taken
		}
	}
	for profile := range sums {
		sums[profile] /= time.Duration(p.pods)
	}
	return sums
}

// hold takes the lease of the scheduler.
func (x *bench) hold(ctx context.Context, b *testing.B) {
	b.Helper()
	holder, seconds, now := "benchmark", int32(patience.Seconds()), metav1.NowMicro()
	_, err := x.Kube.CoordinationV1().Leases(leaseNamespace).Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: lease},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now,
			RenewTime: &now},
	}, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
}

// release deletes the lease, which the scheduler then takes. The next round finds none: it ends
// with the scheduler.
func (x *bench) release(ctx context.Context, b *testing.B) {
	b.Helper()
	if err := x.Kube.CoordinationV1().Leases(leaseNamespace).Delete(ctx, lease, metav1.DeleteOptions{}); err != nil {
		b.Fatal(err)
	}
}

// pending returns how many pods have no node.
func (x *bench) pending(ctx context.Context, b *testing.B, process *controlplane.Process) int {
	b.Helper()
	list, err := x.Kube.CoreV1().Pods("").List(ctx,
		metav1.ListOptions{FieldSelector: "spec.nodeName=", ResourceVersion: "0"})
	if err != nil {
		b.Fatalf("list the pods: %v\n%s", err, process.Log())
	}
	return len(list.Items)
}

// deletePods deletes the pods of all teams and the lease of the scheduler.
func (x *bench) deletePods(ctx context.Context, b *testing.B) {
	b.Helper()
	if err := x.Kube.CoordinationV1().Leases(leaseNamespace).DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{FieldSelector: "metadata.name=" + lease}); err != nil {
		b.Error(err)
	}
	var all errgroup.Group
	for _, name := range teamNames() {
		all.Go(func() error {
			controlplane.DeletePods(ctx, b, x.Kube, name)
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		b.Error(err)
	}
}
