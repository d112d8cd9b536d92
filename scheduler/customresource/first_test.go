package customresource

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

// A plugin that enforces limits decides nothing until it has the objects, so that a scheduler that
// was restarted does not exceed them.
func TestFirstWaitsForTheFirstObjects(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{
		"objects": 0, "no resource": http.StatusNotFound, "no permission": http.StatusForbidden,
	} {
		s := newServer(t, status)
		s.change(func() { s.put("a", 1); s.put("b", 2) })
		p, first := startWith(t, s)
		if !first.Wait(t.Context()) {
			t.Errorf("%s: the objects are not known", name)
		}
		want := map[string]int64{}
		if status == 0 {
			want = map[string]int64{"lab/a": 1, "lab/b": 2}
		}
		p.mu.Lock()
		if diff := cmp.Diff(want, p.heights); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		p.mu.Unlock()
	}
}

func TestFirstWaitsOnceWhileTheAPIServerIsUnavailable(t *testing.T) {
	t.Parallel()
	s := newServer(t, http.StatusServiceUnavailable)
	p, first := startWith(t, s)
	p.awaitLine(t, "Racks cannot read the resource")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if first.Wait(canceled) {
		t.Error("the objects are known")
	}
	first.wait = time.Millisecond
	if first.Wait(t.Context()) || !first.Wait(t.Context()) {
		t.Error("the plugin waits again")
	}
	var none *First
	if !none.Wait(t.Context()) {
		t.Error("a plugin without First waits")
	}
}

func startWith(t *testing.T, s *server) (*plugin, *First) {
	t.Helper()
	p := &plugin{handle: &plugintest.Handle{Config: &rest.Config{Host: s.URL}}}
	o := p.options()
	o.First = NewFirst()
	if err := Watch(t.Context(), p.handle, o); err != nil {
		t.Fatal(err)
	}
	return p, o.First
}
