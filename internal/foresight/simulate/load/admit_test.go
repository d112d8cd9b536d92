package load_test

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/load"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// Nothing is created, and the API server is asked once for pods that differ in their names only.
func TestPodsThatDifferInTheirNamesAreAdmittedOnce(t *testing.T) {
	s := &server{}
	web := httptest.NewServer(s)
	defer web.Close()
	l, err := load.New(t.Context(), &rest.Config{Host: web.URL, QPS: -1}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	kind, version := snapshot.Find(snapshot.Kinds(), "v1", "Pod")
	admit := func(text string) error {
		o, err := snapshot.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		_, err = l.Admit(t.Context(), kind, version, o)
		return err
	}
	for _, name := range []string{"a", "b", "Not valid"} {
		err := admit(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + name + `","namespace":"shop"}}`)
		if err != nil {
			t.Fatal(err)
		}
	}
	var posted []string
	for _, request := range s.requests {
		if strings.HasPrefix(request, "POST /api/v1/namespaces/shop/pods") {
			posted = append(posted, request)
		}
	}
	if len(posted) != 2 || !strings.Contains(posted[0], `"name":"a"`) ||
		!strings.Contains(posted[1], `"name":"Not valid"`) {
		t.Errorf("requests %q", s.requests)
	}
	if len(s.created) > 1 { // the namespace
		t.Errorf("created %q", s.created)
	}
	s.forbid = "/api/v1/namespaces/shop/pods"
	var refused *load.RefusedError
	err = admit(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"c","namespace":"shop"},"spec":{"priorityClassName":"x"}}`)
	if !errors.As(err, &refused) || refused.Reason != "pods is forbidden: too much" {
		t.Errorf("got %v", err)
	}
}

// The classes are stored as the API server stores them: a file of another one, or of the same in
// another order, has another or the same hash.
func TestClassesAreStored(t *testing.T) {
	classes := func(objects ...string) (*load.Classes, error) {
		c := load.NewClasses()
		for _, text := range objects {
			o, err := snapshot.Decode([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			kind, _ := snapshot.FindOf(snapshot.Kinds(), o)
			if err := c.Add(kind, o); err != nil {
				return c, err
			}
		}
		return c, nil
	}
	const (
		gold   = `{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"gold","uid":"1"},"value":5,"globalDefault":true}`
		vm     = `{"apiVersion":"node.k8s.io/v1","kind":"RuntimeClass","metadata":{"name":"vm"},"handler":"vm"}`
		limits = `{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"l","namespace":"shop"},"spec":{"limits":[]}}`
		other  = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`
	)
	a, err := classes(gold, other, vm, limits)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, o := range a.Objects() {
		keys = append(keys, o.Key)
	}
	const want = "limitranges/shop/l priorityclasses/gold priorityclasses/system-cluster-critical " +
		"priorityclasses/system-node-critical runtimeclasses/vm"
	if got := strings.Join(keys, " "); got != want {
		t.Errorf("got %s", got)
	}
	if value := string(a.Objects()[1].Value); !strings.Contains(value, `"globalDefault":true`) ||
		!strings.Contains(value, `"creationTimestamp":"2000-01-01T00:00:00Z"`) {
		t.Errorf("got %s", value)
	}
	if !a.Has("PriorityClass", "gold") || !a.Has("PriorityClass", "system-node-critical") || a.Has("RuntimeClass", "gold") {
		t.Error("wrong classes")
	}
	b, err := classes(limits, vm, strings.Replace(gold, `"uid":"1"`, `"uid":"2"`, 1))
	if err != nil || a.Hash() != b.Hash() {
		t.Errorf("%v: other hashes of the same classes", err)
	}
	c, err := classes(limits, vm, strings.Replace(gold, `"value":5`, `"value":6`, 1))
	if err != nil || a.Hash() == c.Hash() {
		t.Errorf("%v: the same hash of other classes", err)
	}
	if _, err := classes(strings.Replace(gold, `"value":5`, `"value":"5"`, 1)); !problem.IsInvalid(err) ||
		!strings.Contains(err.Error(), "read PriorityClass gold") {
		t.Errorf("got %v", err)
	}
}
