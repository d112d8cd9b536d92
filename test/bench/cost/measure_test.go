//go:build linux

package cost

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
)

const (
	// The profiles: no plugin, the bundled one and the other one. Each has so many pods.
	none, bundled, native = "none", "bundled", "native"
	pods                  = 200
	// warmup is how many cycles of each profile are not counted: plugins fill their caches when they are first called.
	warmup = 20
	// The scheduler does not start to schedule while the benchmark has its lease.
	lease, leaseNamespace = "cost", metav1.NamespaceSystem
	patience              = 15 * time.Minute
)

// cost is the time of a plugin for each pod, in seconds, by extension point.
type cost map[string]float64

func (c cost) total() (sum float64) {
	for _, seconds := range c {
		sum += seconds
	}
	return sum
}

// String returns the times in microseconds.
func (c cost) String() string {
	var parts []string
	for _, point := range []string{"preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit", "preBind", "postBind"} {
		if seconds, ok := c[point]; ok {
			parts = append(parts, fmt.Sprintf("%s %.1f", point, 1e6*seconds))
		}
	}
	return fmt.Sprintf("%.1f µs (%s)", 1e6*c.total(), strings.Join(parts, ", "))
}

// measure makes all pods pending and lets the scheduler read what it needs before it schedules the first one. It waits until all are bound.
func (x *bench) measure(b *testing.B, profiles map[string]plugin, gpus bool) map[string]cost {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	x.createPods(ctx, b, profiles, gpus)
	defer x.deletePods(ctx, b)
	x.hold(ctx, b)
	process, m := x.start(ctx, b, profiles)
	defer process.Kill()
	x.release(ctx, b)
	before := m.await(ctx, b, profiles)
	x.awaitBound(ctx, b, process)
	after, costs := m.read(ctx, b), map[string]cost{}
	for profile, p := range profiles {
		costs[profile] = before.until(after, profile, p.points)
	}
	return costs
}

// hold takes the lease of the scheduler.
func (x *bench) hold(ctx context.Context, b *testing.B) {
	b.Helper()
	holder, seconds, now := "benchmark", int32(patience.Seconds()), metav1.NowMicro()
	_, err := x.Kube.CoordinationV1().Leases(leaseNamespace).Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: lease},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now},
	}, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
}

// release deletes the lease, which the scheduler then takes. The next round finds none: it ends with the scheduler.
func (x *bench) release(ctx context.Context, b *testing.B) {
	b.Helper()
	if err := x.Kube.CoordinationV1().Leases(leaseNamespace).Delete(ctx, lease, metav1.DeleteOptions{}); err != nil {
		b.Fatal(err)
	}
}

func (x *bench) awaitBound(ctx context.Context, b *testing.B, process *controlplane.Process) {
	b.Helper()
	for {
		list, err := x.Kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=", ResourceVersion: "0"})
		if err != nil {
			b.Fatal(err)
		}
		if len(list.Items) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			b.Fatalf("%d pods are pending, one of them is %s/%s: %v\n%s", len(list.Items), list.Items[0].Namespace, list.Items[0].Name, list.Items[0].Status.Conditions, process.Log())
		case <-time.After(time.Second):
		}
	}
}

// deletePods deletes the pods of all teams and the lease of the scheduler.
func (x *bench) deletePods(ctx context.Context, b *testing.B) {
	b.Helper()
	if err := x.Kube.CoordinationV1().Leases(leaseNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=" + lease}); err != nil {
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
