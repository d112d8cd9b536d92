//go:build linux

package lab

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/versions"
)

func TestUpgradeRefusesSkippedMinorsAndDowngrades(t *testing.T) {
	for _, c := range []struct{ from, to, says string }{
		{"v1.24.3", "v1.25.4", ""},
		{"v1.24.3", "v1.24.3", ""},
		{"v1.24.3", "v1.24.17", ""},
		{"v1.24.3", "v1.23.17", "go back"},
		{"v1.24.3", "v1.24.2", "go back"},
		{"v1.24.3", "v1.26.3", "in one step"},
		{"v1.33.13", "v1.34.2", "etcd"},
	} {
		from, _ := versions.Parse(c.from)
		to, _ := versions.Parse(c.to)
		err := upgradable(from, to, false)
		if (err == nil) != (c.says == "") || (err != nil && !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s to %s: %v", c.from, c.to, err)
		}
	}
}

func TestKubeadmUpgradesEtcdToo(t *testing.T) {
	if err := upgradable(release(t, "v1.33.13"), release(t, "v1.34.2"), true); err != nil {
		t.Error(err)
	}
}

func TestStepsOfAnUpgradeByKubeadm(t *testing.T) {
	l := exampleLab(t, LayoutKubeadm, "v1.24.3", 2, 1)
	l.state.Kubeadm = true
	u := &bringUp{o: Options{Release: release(t, "v1.25.4")}, lab: l}
	var names []string
	for _, s := range u.upgradeSteps(versions.Rules{}) {
		names = append(names, s.name)
	}
	want := []string{
		"check this machine", "get Kubernetes v1.25.4", "make images", "load images",
		"upgrade node demo", "upgrade node demo-2", "upgrade node demo-worker-1", "wait for the control plane",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

// The keys of a cluster do not change in an upgrade: no file that it writes may contain one.
func TestUpgradeWritesNoKeys(t *testing.T) {
	for _, l := range layouts() {
		n := exampleNode(t, l, "v1.25.4")
		settings, err := l.settings(n)
		if err != nil {
			t.Fatal(err)
		}
		shared, err := l.sharedSettings(n)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range append(settings, shared...) {
			if text := string(f.data); strings.Contains(text, "key of ") || strings.Contains(text, "certificate of ") || strings.Contains(text, "client-key-data") {
				t.Errorf("%s: %s contains keys", l.name, f.path)
			}
		}
	}
}
