//go:build linux && labs

package lifecycle

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/lab"
)

func down(t *testing.T, o lab.Options) {
	t.Helper()
	if err := lab.Down(t.Context(), o.StateDir, o.Name, nil); err != nil {
		t.Fatal(err)
	}
}

func TestTwoLabsAtTheSameTime(t *testing.T) {
	m := watchMachine(t)
	stateDir, cacheDir := directories(t)
	first, second := options(t, stateDir, cacheDir, "one"), options(t, stateDir, cacheDir, "two")
	first.Layout, second.Layout = lab.LayoutKubeadm, lab.LayoutKubeadm
	type made struct {
		l   *lab.Lab
		err error
	}
	results := make(chan made, 2)
	for _, o := range []lab.Options{first, second} {
		go func() {
			l, err := lab.Up(t.Context(), o)
			results <- made{l, err}
		}()
	}
	labs := map[string]*lab.Lab{}
	for range 2 {
		r := <-results
		if r.err != nil {
			t.Error(r.err)
			continue
		}
		labs[r.l.Name()] = r.l
	}
	if t.Failed() {
		t.FailNow()
	}
	if found, err := lab.List(stateDir); err != nil || len(found) != 2 {
		t.Errorf("labs here: %d, %v", len(found), err)
	}
	one, two := labs[first.Name], labs[second.Name]
	if got := kubectl(t, one, "get", "nodes", "-o", "name"); got != "node/"+one.Name() {
		t.Errorf("the first lab has %s", got)
	}
	if got := kubectl(t, two, "get", "nodes", "-o",
		"jsonpath={.items[*].spec.taints[*].key}"); got != "node-role.kubernetes.io/control-plane node-role.kubernetes.io/master" &&
		got != "node-role.kubernetes.io/master node-role.kubernetes.io/control-plane" {
		t.Errorf("the taints of kubeadm 1.24 are %s", got)
	}
	down(t, first)
	podsRun(t, two, "node-role.kubernetes.io/control-plane")
	down(t, second)
	m.unchanged(t)
}
