//go:build linux

package lab

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNodeEnv(t *testing.T) {
	l := &Lab{dir: "/labs/demo", state: state{Name: "demo", Layout: LayoutPMK, Subnet: "198.18.3.0/24"}}
	got := l.first().env([]string{"HOME=/root", "KUBECONFIG=/mine", "PATH=/usr/bin:/mine/bin", "no_proxy=example.com",
		"PMK_SCHED_NODE_ROOT=/elsewhere"})
	const direct = "localhost,127.0.0.1,10.96.0.0/16,10.244.0.0/16,198.18.3.0/24"
	want := []string{
		"HOME=/root",
		"KUBECONFIG=/etc/pf9/kube.d/kubeconfigs/admin.yaml",
		"NO_PROXY=" + direct,
		"PATH=/labs/demo/cp1/bin:/usr/bin:/mine/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin",
		"PMK_SCHED_NODE_ROOT=/labs/demo/cp1/root",
		"no_proxy=example.com," + direct,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestExecRefusesMissingProgram(t *testing.T) {
	l := &Lab{dir: t.TempDir(), state: state{Name: "demo"}}
	if _, err := l.Exec(t.Context(), Command{}); !isInvalid(err) {
		t.Errorf("no command: %v", err)
	}
	if _, err := l.Exec(t.Context(), Command{Argv: []string{"no-such-program"}}); !isInvalid(err) ||
		!strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("unknown program: %v", err)
	}
}

func TestLookAtMachineReportsEverythingThatIsMissing(t *testing.T) {
	r := release(t, "v1.24.3")
	needed := exampleLab(t, LayoutKubeadm, "v1.24.3", 3, 0).requiredPrograms()
	_, err := inspectMachine(r, needed, places{path: t.TempDir(), plugins: []string{t.TempDir()}})
	var missing *MissingError
	if !errors.As(err, &missing) {
		t.Fatalf("got %v", err)
	}
	for _, what := range []string{"root", "containerd", "runc", "iptables", "nsenter", "CNI plugins", "busybox"} {
		if !strings.Contains(missing.Error(), what) {
			t.Errorf("%q is not in: %s", what, missing)
		}
	}
	want := "apt-get install -y --no-install-recommends containerd runc iptables iproute2 mount util-linux haproxy " +
		"containernetworking-plugins busybox-static"
	if missing.Hint() != want {
		t.Errorf("hint %q", missing.Hint())
	}
}

func TestLookAtMachineWithEverything(t *testing.T) {
	dir := t.TempDir()
	var names []string
	needed := exampleLab(t, LayoutPMK, "v1.24.3", 3, 0).requiredPrograms()
	for _, n := range needed {
		names = append(names, n.program)
	}
	for _, name := range append(append(names, pluginsOfNetwork()...), "etcd") {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	at := places{path: dir, plugins: []string{dir}, root: true}
	_, err := inspectMachine(release(t, "v1.24.3"), needed, at)
	var missing *MissingError
	if !errors.As(err, &missing) || missing.Hint() != "apt-get install -y --no-install-recommends busybox-static" {
		t.Fatalf("only busybox is missing, got %v", err)
	}
	// The test binary is a dynamically linked program.
	if err := os.WriteFile(filepath.Join(dir, "busybox"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := inspectMachine(release(t, "v1.24.3"), needed, at); err == nil ||
		!strings.Contains(err.Error(), "static") {
		t.Errorf("dynamically linked busybox: %v", err)
	}
}

func TestEtcdByRelease(t *testing.T) {
	for rel, want := range map[string]bool{"v1.20.0": true, "v1.33.13": true, "v1.34.0": false, "v1.37.1": false} {
		if got := release(t, rel).Rules().Etcd34; got != want {
			t.Errorf("%s: %v", rel, got)
		}
	}
}

func TestImageKeyDependsOnContent(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	programs := map[string]string{}
	for _, name := range components() {
		programs[name] = write(name, name)
	}
	busybox, pause := write("busybox", "busybox"), write("pause", "pause")
	keys := func() map[string]string {
		out := map[string]string{}
		for _, i := range labImages(exampleNode(t, "v1.24.3"), programs, pause, busybox) {
			key, err := i.key(busybox)
			if err != nil {
				t.Fatal(err)
			}
			out[i.ref] = key
		}
		return out
	}
	before := keys()
	if diff := cmp.Diff(before, keys()); diff != "" {
		t.Errorf("the same files give different keys: %s", diff)
	}
	programs["kube-scheduler"] = write("kube-scheduler-2", "another one")
	after := keys()
	scheduler := componentImage("kube-scheduler", release(t, "v1.24.3"))
	for ref := range before {
		if changed := before[ref] != after[ref]; changed != (ref == scheduler) {
			t.Errorf("%s changed: %v", ref, changed)
		}
	}
}
