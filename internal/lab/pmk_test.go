//go:build linux

package lab

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/test/golden"
	"github.com/pmk-sched/pmk-sched/versions"
)

func TestStepsOfSeveralControlPlaneNodesOfPMK(t *testing.T) {
	for masters, want := range map[int][]string{
		1: {"start the API server", "register node demo", "wait for the control plane"},
		3: {"start the API server", "start keepalived", "register node demo", "register node demo-2", "register node demo-3",
			"wait for the control plane"},
	} {
		want = append([]string{
			"check this machine", "get Kubernetes v1.24.3", "make images", "make namespaces and network",
			"write the nodes' files",
			"start etcd and containerd", "load images",
		}, want...)
		if diff := cmp.Diff(want, stepNames(t, Options{Masters: masters})); diff != "" {
			t.Errorf("%d control-plane nodes: %s", masters, diff)
		}
	}
}

func TestStepsOfAnUpgradeOfSeveralNodesOfPMK(t *testing.T) {
	u := &bringUp{o: Options{Release: release(t, "v1.25.4")}, lab: exampleLab(t, LayoutPMK, "v1.24.3", 2, 0)}
	var names []string
	for _, s := range u.upgradeSteps() {
		names = append(names, s.name)
	}
	want := []string{
		"check this machine", "get Kubernetes v1.25.4", "make images", "load images",
		"upgrade the control plane of 198.18.3.2", "upgrade node 198.18.3.2", "upgrade the control plane of 198.18.3.3",
		"upgrade node 198.18.3.3",
		"wait for the control plane",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

// The second of three nodes: each API server uses the member of etcd of its node, and each
// kubeconfig names localhost.
func TestFilesOfOneOfSeveralNodesOfPMK(t *testing.T) {
	l, lay := exampleLab(t, LayoutPMK, "v1.24.3", 3, 0), pmkLayout()
	rules, err := versions.Select(l.Release())
	if err != nil {
		t.Fatal(err)
	}
	n := l.Nodes()[1]
	c := n.config(rules)
	c.keys = named()
	files, err := lay.allFiles(c)
	if err != nil {
		t.Fatal(err)
	}
	alone := exampleNode(t, "v1.24.3")
	before, err := lay.allFiles(alone)
	if err != nil {
		t.Fatal(err)
	}
	same := map[string]string{}
	for _, f := range before {
		same[f.path] = strings.ReplaceAll(strings.ReplaceAll(string(f.data), "198.18.3.2", "198.18.3.3"), "10.244.0.0/24",
			"10.244.1.0/24")
	}
	var b strings.Builder
	for _, f := range append(files, file{keeperConfigPath, 0o644, keeperConfiguration(c, n.apiServerCheck(lay))}) {
		if same[f.path] != string(f.data) {
			fmt.Fprintf(&b, "-- %s %04o --\n%s\n", f.path, f.mode, f.data)
		}
	}
	golden.Equal(t, "testdata/pmk-three.txt", b.String())
	for _, f := range files {
		if strings.Contains(f.path, "kubeconfigs") && !strings.Contains(string(f.data), "server: https://localhost:443\n") {
			t.Errorf("%s does not name localhost:\n%s", f.path, f.data)
		}
	}
}

func TestOnlySeveralNodesOfPMKHaveAVirtualAddress(t *testing.T) {
	for _, c := range []struct {
		layout  string
		masters int
		want    string
		daemon  bool
	}{
		{LayoutPMK, 3, "198.18.3.253", true},
		{LayoutPMK, 1, "invalid IP", false},
		{LayoutKubeadm, 3, "invalid IP", false},
	} {
		l := exampleLab(t, c.layout, "v1.24.3", c.masters, 0)
		if got := l.virtualAddress().String(); got != c.want {
			t.Errorf("%s with %d nodes: %s", c.layout, c.masters, got)
		}
		if got := strings.Contains(strings.Join(l.first().daemons(), " "), keeper); got != c.daemon {
			t.Errorf("%s with %d nodes: keepalived is a process of the node: %v", c.layout, c.masters, got)
		}
		if c.layout == LayoutPMK && strings.Contains(strings.Join(l.networkDaemons(), " "), balancer) {
			t.Errorf("%s has a load balancer", c.layout)
		}
	}
}

// Every node has another priority, and the first one the highest.
func TestPrioritiesForTheVirtualAddress(t *testing.T) {
	for i, n := range exampleLab(t, LayoutPMK, "v1.24.3", 3, 0).Nodes() {
		text := string(keeperConfiguration(n.config(versions.Rules{}), []string{"true"}))
		if want := fmt.Sprintf("priority %d\n", 100-i); !strings.Contains(text, want) {
			t.Errorf("node %d does not have %q:\n%s", i, want, text)
		}
		peers, _, _ := strings.Cut(text[strings.Index(text, "unicast_peer"):], "}")
		if strings.Count(peers, "198.18.3.") != 2 || strings.Contains(peers, n.address.String()+"\n") {
			t.Errorf("the peers of %s are %s", n.address, peers)
		}
	}
}

func TestNodesAreFoundByTheirHostNamesToo(t *testing.T) {
	l := exampleLab(t, LayoutPMK, "v1.24.3", 3, 0)
	for _, name := range []string{"198.18.3.3", "demo-2"} {
		if n, err := l.Node(name); err != nil || n.port() != "cp2" {
			t.Errorf("%s: %v, %v", name, n, err)
		}
	}
}

func TestFlagsFromTheNodeAgentsSettings(t *testing.T) {
	for text, want := range map[string][]string{
		"":                              nil,
		"export ROLE=\"master\"\n":      nil,
		"export SCHEDULER_FLAGS=\"\"\n": {},
		"export SCHEDULER_FLAGS=\"--feature-gates=,--config=/x.yaml\"\n":         {"--feature-gates=", "--config=/x.yaml"},
		"SCHEDULER_FLAGS='--feature-gates=A=true,B=false,--v=4,'\nROLE=master\n": {"--feature-gates=A=true,B=false", "--v=4"},
		"SCHEDULER_FLAGS=--v=4 # more\n":                                         {"--v=4"},
		"SCHEDULER_FLAGS=--v=2\nSCHEDULER_FLAGS=--v=3\n":                         {"--v=3"},
	} {
		if diff := cmp.Diff(want, schedulerFlags(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

// The node agent writes its files again when it starts: an edit is lost, unless its settings ask
// for it.
func TestNodeAgentRewritesTheManifest(t *testing.T) {
	l := exampleLab(t, LayoutPMK, "v1.24.3", 1, 0)
	l.dir = t.TempDir()
	rules, err := versions.Select(l.Release())
	if err != nil {
		t.Fatal(err)
	}
	n, lay := l.first(), pmkLayout()
	c := n.config(rules)
	c.keys = named()
	files, err := lay.allFiles(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.write(files); err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(n.Root(), lay.staticPods)
	read := func() string {
		text, err := os.ReadFile(manifest)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	original := read()
	if err := os.WriteFile(manifest, []byte("edited"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := n.runAgent(rules); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(original, read()); diff != "" {
		t.Errorf("the agent wrote another manifest: %s", diff)
	}
	if err := os.WriteFile(filepath.Join(n.Root(), agentSettings), []byte("export SCHEDULER_FLAGS=\"--v=4\"\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	if err := n.runAgent(rules); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(read(), "    - --v=2\n    - --v=4\n") {
		t.Errorf("the settings are not in the manifest:\n%s", read())
	}
	if info, err := os.Stat(manifest); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the manifest has another mode: %v, %v", info, err)
	}
}

// A kubelet that exits is started again, and a stopped supervisor stops it.
func TestSupervisedKubelet(t *testing.T) {
	l := exampleLab(t, LayoutPMK, "v1.24.3", 1, 0)
	rules, err := versions.Select(l.Release())
	if err != nil {
		t.Fatal(err)
	}
	d := l.first().kubelet(rules)
	if d.argv[0] != "sh" || d.argv[4] != "/opt/pf9/pf9-kube/bin/kubelet" {
		t.Fatalf("it is started as %q", d.argv)
	}
	dir := t.TempDir()
	starts, program := filepath.Join(dir, "starts"), filepath.Join(dir, "program")
	script := "#!/bin/sh\necho x >>" + starts + "\n[ $(wc -l <" + starts + ") -gt 1 ] || exit 3\nexec sleep 60\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd := exec.Command(d.argv[0], append(d.argv[1:4:4], program)...)
	cmd.Stdout, cmd.WaitDelay = &out, 10*time.Second // The program holds the output while it runs.
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		text, _ := os.ReadFile(starts)
		if strings.Count(string(text), "x") == 2 {
			break
		}
		if time.Since(begin) > 30*time.Second {
			t.Errorf("it was not started again: %q", text)
			break
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the program still runs: %v", err)
	}
}
