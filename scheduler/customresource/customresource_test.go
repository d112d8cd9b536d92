package customresource

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

// plugin stores the heights of racks by namespace/name.
type plugin struct {
	handle *plugintest.Handle

	mu      sync.Mutex
	heights map[string]int64
	states  []State
	sets    int
}

func (p *plugin) options() Options {
	p.heights = map[string]int64{}
	return Options{
		Plugin: "Racks", Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1",
			Resource: "racks"}, Missing: "all racks are equal",
		Set: func(rack *unstructured.Unstructured) error {
			height, _, err := unstructured.NestedInt64(rack.Object, "spec", "height")
			if err != nil {
				return err
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			p.sets++
			p.heights[rack.GetNamespace()+"/"+rack.GetName()] = height
			return nil
		},
		Delete: func(namespace, name string) {
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.heights, namespace+"/"+name)
		},
		Observe: func(s State) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.states = append(p.states, s)
		},
	}
}

// newPlugin returns one that reads racks from a server.
func newPlugin(t *testing.T, s *server, namespace string) *plugin {
	t.Helper()
	p := &plugin{handle: &plugintest.Handle{Config: &rest.Config{Host: s.URL}}}
	o := p.options()
	o.Namespace = namespace
	if err := Watch(t.Context(), p.handle, o); err != nil {
		t.Fatal(err)
	}
	return p
}

// await waits until the plugin has racks, each as name=height.
func (p *plugin) await(t *testing.T, what string, want map[string]int64) {
	t.Helper()
	eventually(t, what, func() string {
		p.mu.Lock()
		defer p.mu.Unlock()
		return cmp.Diff(want, p.heights)
	})
}

// awaitLine waits for a line of the log.
func (p *plugin) awaitLine(t *testing.T, part string) {
	t.Helper()
	eventually(t, "the log has "+part, func() string {
		if lines := strings.Join(p.handle.Lines(), "\n"); !strings.Contains(lines, part) {
			return "got " + lines
		}
		return ""
	})
}

// eventually waits until check returns no problem.
func eventually(t *testing.T, what string, check func() string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		problem := check()
		if problem == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %s", what, problem)
		}
	}
}

func TestObjectsAreReadWhenTheResourceAppearsLater(t *testing.T) {
	t.Parallel()
	s := newServer(t, http.StatusNotFound)
	p := newPlugin(t, s, "")
	p.awaitLine(t,
		"Racks: the resource does not exist (its CustomResourceDefinition is not installed); all racks are equal "+
			"resource=racks.example.com version=v1")
	s.change(func() { s.status = 0; s.put("a", 1); s.put("b", 2) })
	p.await(t, "the resource appears", map[string]int64{"lab/a": 1, "lab/b": 2})
	s.change(func() { s.put("a", 3); s.remove("b"); s.put("c", 4) })
	p.await(t, "objects change", map[string]int64{"lab/a": 3, "lab/c": 4})
	s.change(func() { s.put("c", "high") })
	p.await(t, "an object becomes invalid", map[string]int64{"lab/a": 3})
	p.awaitLine(t, "Racks ignores an object that it cannot read err=")
	s.change(func() { s.put("c", 5) })
	p.await(t, "it becomes valid", map[string]int64{"lab/a": 3, "lab/c": 5})
	if got := p.handle.Lines(); len(got) != 3 ||
		got[1] != "Racks reads the resource resource=racks.example.com version=v1" {
		t.Errorf("got %q", got)
	}
	if !s.requested("/apis/example.com/v1/racks") || s.requested("/namespaces/") {
		t.Errorf("requested %q", s.paths)
	}
}

// When the resource is back, the informer does not report objects that are unchanged.
func TestObjectsAreGoneWithTheResourceAndBackWithIt(t *testing.T) {
	t.Parallel()
	s := newServer(t, 0)
	s.change(func() { s.put("a", 1) })
	p := newPlugin(t, s, "lab")
	p.await(t, "objects that exist", map[string]int64{"lab/a": 1})
	s.change(func() { s.status = http.StatusNotFound; s.disconnect() })
	p.await(t, "the resource is gone", map[string]int64{})
	s.change(func() { s.status = 0 })
	p.await(t, "the resource is back", map[string]int64{"lab/a": 1})
	if !s.requested("/apis/example.com/v1/namespaces/lab/racks") || s.requested("v1/racks") {
		t.Errorf("requested %q", s.paths)
	}
}

func TestChangesWhileAWatchIsBrokenAreFound(t *testing.T) {
	t.Parallel()
	s := newServer(t, 0)
	s.change(func() { s.put("a", 1); s.put("b", 2) })
	p := newPlugin(t, s, "")
	p.await(t, "objects that exist", map[string]int64{"lab/a": 1, "lab/b": 2})
	s.change(func() {
		s.disconnect()
		s.remove("a")
		s.put("b", 3)
		s.history, s.oldest = nil, s.version // the resource version is too old for a watch
	})
	p.await(t, "a list replaces the objects", map[string]int64{"lab/b": 3})
	s.change(func() { s.put("c", 4) })
	p.await(t, "the watch continues", map[string]int64{"lab/b": 3, "lab/c": 4})
	if got := p.handle.Lines(); len(got) != 1 {
		t.Errorf("an expired resource version is logged: %q", got)
	}
}

func TestTheLastObjectsAreUsedWhileTheResourceCannotBeRead(t *testing.T) {
	t.Parallel()
	s := newServer(t, http.StatusForbidden)
	p := newPlugin(t, s, "")
	p.awaitLine(t,
		"Racks: reading the resource is forbidden; the last objects are used (is the plugin's ClusterRole applied?) err=")
	s.change(func() { s.status = 0; s.put("a", 1) })
	p.await(t, "the permission is there", map[string]int64{"lab/a": 1})
	s.change(func() { s.status = http.StatusServiceUnavailable; s.disconnect() })
	p.awaitLine(t, "Racks cannot read the resource; the last objects are used err=")
	p.await(t, "the API server is unavailable", map[string]int64{"lab/a": 1})
}

func TestWatchFailsWithoutACluster(t *testing.T) {
	p := &plugin{handle: &plugintest.Handle{Config: &rest.Config{Host: "http://[::1"}}}
	if err := Watch(t.Context(), p.handle, p.options()); err == nil ||
		!strings.Contains(err.Error(), "create client for racks.example.com") {
		t.Errorf("got %v", err)
	}
}

// newReader returns a reader whose informer has objects.
func newReader(t *testing.T, p *plugin, objects ...*unstructured.Unstructured) *reader {
	t.Helper()
	p.handle = &plugintest.Handle{}
	r := &reader{Options: p.options(), log: p.handle.Logger(t.Context()), name: "racks", invalid: map[string]bool{},
		store: cache.NewStore(cache.MetaNamespaceKeyFunc)}
	for _, o := range objects {
		if err := r.store.Add(o); err != nil {
			t.Fatal(err)
		}
		r.set(o)
	}
	return r
}

func rack(name string, height interface{}) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]interface{}{
		"metadata": map[string]interface{}{"name": name}, "spec": map[string]interface{}{"height": height},
	}}
}

func TestOneLineIsLoggedForEachChangeOfTheState(t *testing.T) {
	p := &plugin{}
	r := newReader(t, p, rack("a", int64(1)))
	for _, step := range []struct {
		status int
		want   State // "": nothing is observed
		racks  int
	}{
		{404, Missing, 0}, {404, Missing, 0}, {200, Readable, 1}, {410, "", 1}, {200, Readable, 1}, {403, Forbidden, 1}, {403,
			Forbidden, 1}, {200, Readable, 1},
		{500, Unreachable, 1}, {0, Unreachable, 1}, {404, Missing, 0}, {0, Unreachable, 0}, {200, Readable, 1},
	} {
		p.states = nil
		r.answered(step.status)
		if step.status != http.StatusOK {
			r.failed(errors.New("failed"))
		}
		if got := strings.Trim(fmt.Sprint(p.states), "[]"); got != string(step.want) || len(p.heights) != step.racks {
			t.Errorf("after %d: %q with %d racks, want %q with %d", step.status, got, len(p.heights), step.want, step.racks)
		}
	}
	if p.sets != 3 { // when it is added, and whenever the resource is back
		t.Errorf("the object was set %d times", p.sets)
	}
	var got []string
	for _, line := range p.handle.Lines() {
		got = append(got, strings.Join(strings.Fields(line)[1:4], " "))
	}
	want := []string{
		"the resource does", "reads the resource", "reading the resource", "reads the resource", "cannot read the",
		"the resource does", "cannot read the", "reads the resource",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnInvalidObjectIsLoggedOnceUntilItIsValidOrDeleted(t *testing.T) {
	p := &plugin{}
	r := newReader(t, p)
	logged := func(what string, want int) {
		t.Helper()
		if got := p.handle.Lines(); len(got) != want {
			t.Errorf("%s: %q, want %d lines", what, got, want)
		}
	}
	r.set(rack("a", int64(1)))
	r.set(rack("a", "high"))
	logged("an invalid object", 1)
	if len(p.heights) != 0 {
		t.Error("the previous object is used")
	}
	r.set(rack("a", "higher"))
	logged("still invalid", 1)
	r.set(rack("a", int64(1)))
	r.set(rack("a", "high"))
	logged("invalid again", 2)
	r.remove(cache.DeletedFinalStateUnknown{Key: "a", Obj: rack("a", "high")})
	r.set(rack("a", "high"))
	logged("deleted meanwhile", 3)
	for i := 0; i < 2*maxInvalid; i++ {
		r.set(rack(fmt.Sprint("b-", i), "high"))
	}
	logged("many invalid objects", 2+maxInvalid)
}

// An object may be deleted shortly before its resource, so that the informer reports it when the
// resource is missing.
func TestDeletionsAreNotLostWhileTheResourceIsMissing(t *testing.T) {
	p := &plugin{}
	a := rack("a", int64(1))
	r := newReader(t, p, a)
	if err := r.store.Delete(a); err != nil {
		t.Fatal(err)
	}
	r.answered(http.StatusNotFound)
	r.failed(errors.New("not found"))
	r.set(rack("b", int64(2))) // older than the failure
	r.remove(a)
	if len(p.heights) != 0 {
		t.Errorf("got %v", p.heights)
	}
}

func TestRuleAllowsToReadTheResource(t *testing.T) {
	want := rbacv1.PolicyRule{APIGroups: []string{"example.com"}, Resources: []string{"racks"},
		Verbs: []string{"get", "list", "watch"}}
	if diff := cmp.Diff(want, Rule((&plugin{}).options().Resource)); diff != "" {
		t.Error(diff)
	}
}
