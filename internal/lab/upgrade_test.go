//go:build linux

package lab

import (
	"os"
	"os/exec"
	"path/filepath"
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
		err := checkUpgrade(from, to, false)
		if (err == nil) != (c.says == "") || (err != nil && !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s to %s: %v", c.from, c.to, err)
		}
	}
}

func TestKubeadmUpgradesEtcdToo(t *testing.T) {
	if err := checkUpgrade(release(t, "v1.33.13"), release(t, "v1.34.2"), true); err != nil {
		t.Error(err)
	}
}

func TestStepsOfAnUpgradeByKubeadm(t *testing.T) {
	l := exampleLab(t, LayoutKubeadm, "v1.24.3", 2, 1)
	u := &bringUp{o: Options{Release: release(t, "v1.25.4")}, lab: l}
	var names []string
	for _, s := range u.upgradeSteps() {
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
	l, n := pmkLayout(), exampleNode(t, "v1.25.4")
	settings, err := l.settings(n)
	if err != nil {
		t.Fatal(err)
	}
	shared, err := l.sharedSettings(n)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(settings, shared...) {
		if text := string(f.data); strings.Contains(text, "key of ") || strings.Contains(text, "certificate of ") ||
			strings.Contains(text, "client-key-data") {
			t.Errorf("%s contains keys", f.path)
		}
	}
}

func TestCrictlAnswersKubeadm(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	crictl := write("crictl", crictlScript)
	// It has one image, and answers only at the socket that kubeadm names.
	write("ctr", `#!/bin/sh
[ "$1 $2 $3 $4" = "--address /run/c.sock --namespace k8s.io" ] || exit 9
shift 4
case "$*" in
version) echo 1.6.20 ;;
"images list --quiet name==registry.k8s.io/pause:3.9") echo registry.k8s.io/pause:3.9 ;;
"images list --quiet "*) ;;
*) exit 8 ;;
esac
`)
	for call, want := range map[string]bool{
		"info": true, "inspecti registry.k8s.io/pause:3.9": true, "inspecti registry.k8s.io/pause:3.8": false, "rmp x": false,
	} {
		cmd := exec.Command(crictl, append([]string{"-r", "unix:///run/c.sock"}, strings.Fields(call)...)...)
		cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin"}
		out, err := cmd.CombinedOutput()
		if (err == nil) != want {
			t.Errorf("crictl %s: %v\n%s", call, err, out)
		}
	}
}
