//go:build linux && releases

package controller

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/test/internal/audit"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// requests returns the number of requests of the controller so far.
func (w *world) requests(t *testing.T) int {
	t.Helper()
	all, err := audit.Requests(auditLog, "")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, r := range all {
		if r.User == w.account() {
			n++
		}
	}
	return n
}

// resident returns the resident memory of this process in MB.
func resident(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// The controller runs in the process of the test, so that its memory is an upper bound.
func TestAHundredSchedulers(t *testing.T) {
	const count = 100
	w := newWorld(t, server)
	before := resident(t)
	o := w.options()
	o.Interval, o.Timeout = time.Minute, time.Minute
	w.start(t, o)
	began := time.Now()
	for i := range count {
		w.mustCreate(t, fmt.Sprintf("many-%d", i), specOf("localhost/scheduler:v1", ", ports: {secure: "+fmt.Sprint(11000+i)+"}"))
	}
	ready := func(ctx context.Context) int {
		list, n := &v1alpha1.CustomSchedulerList{}, 0
		if err := w.kube.List(ctx, list, client.InNamespace(w.ns)); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			if meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, v1alpha1.ConditionReady) {
				n++
			}
		}
		return n
	}
	run.Eventually(t, "all schedulers are ready", func(ctx context.Context) (bool, string) {
		n := ready(ctx)
		return n == count, fmt.Sprint(n)
	})
	t.Logf("%d schedulers are ready after %s, with %d requests; memory %s, before %s", count, time.Since(began).Round(time.Second),
		w.requests(t), resident(t), before)
	time.Sleep(15 * time.Second) // the events of the last deployments
	first := w.requests(t)
	time.Sleep(time.Minute)
	idle := w.requests(t) - first
	t.Logf("%d requests in an idle minute; memory %s", idle, resident(t))
	if n := ready(t.Context()); n != count || idle > 10*count {
		t.Errorf("%d schedulers are ready, %d requests in a minute", n, idle)
	}
}
