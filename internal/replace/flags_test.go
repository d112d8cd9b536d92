package replace

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/artifact/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/versions"
)

// withFlags returns a node whose scheduler has more flags.
func withFlags(t *testing.T, flags ...string) *testNode {
	t.Helper()
	n := newTestNode(t, "kubeadm")
	list := ""
	for _, flag := range flags {
		list += "    - " + flag + "\n"
	}
	n.original = strings.Replace(n.original, "    volumeMounts:", list+"    volumeMounts:", 1)
	n.write(t, n.layout.Manifest, n.original)
	return n
}

// No flag is left out: a release without it would not start, after the old scheduler was stopped.
func TestReplaceHasTheProgramReadEveryFlagOfTheManifest(t *testing.T) {
	t.Parallel()
	n := withFlags(t, "--port=0", "--v", "\"4\"", "--leader-elect", "--address=127.0.0.1")
	deps := n.deps(t)
	var flags []string
	deps.CheckProgram = func(_ context.Context, _ configcheck.Binary, _ string, c deploy.ProgramCheck) error {
		flags = c.Args
		return problem.WithHint(&configcheck.FlagsError{Reason: "unknown flag: --port"}, c.FlagsHint)
	}
	_, err := Run(t.Context(), deps, n.info(), asks("", "binpack"))
	if !problem.IsInvalid(err) || !strings.Contains(err.Error(), "the scheduler refuses its flags: unknown flag: --port") ||
		!strings.Contains(strings.Join(problem.Hints(err), " "), n.layout.Manifest) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]string{"--kubeconfig=/etc/kubernetes/scheduler.conf", "--port=0", "--v", "4", "--leader-elect",
		"--address=127.0.0.1"}, flags); diff != "" {
		t.Errorf("flags (-want +got):\n%s", diff)
	}
	if n.read(t, n.layout.Manifest) != n.original {
		t.Error("the manifest has changed")
	}
}

func TestReplaceRefusesFlagsThatChangeTheLease(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flags   []string
		refused string
	}{
		{[]string{"--leader-elect-resource-name=mine"}, "--leader-elect-resource-name=mine"},
		{[]string{"--leader_elect_resource_namespace=default"}, "--leader-elect-resource-namespace=default"},
		{[]string{"--leader-elect-resource-lock=endpoints"}, "--leader-elect-resource-lock=endpoints"},
		{[]string{"--lock-object-name", "mine"}, "--lock-object-name=mine"},
		{[]string{"--lock-object-namespace=default"}, "--lock-object-namespace=default"},
		{[]string{"--leader-elect-resource-lock=endpointsleases", "--lock-object-name=kube-scheduler"}, ""},
		{[]string{"--leader_elect=False", "--leader-elect-resource-name=mine"}, ""},
	} {
		n := withFlags(t, c.flags...)
		plan, err := DryRun(t.Context(), n.deps(t), n.info(), asks("", "binpack"))
		switch {
		case c.refused == "" && err != nil:
			t.Errorf("%q: %v", c.flags, err)
		case c.refused != "" && (!problem.IsInvalid(err) || !strings.Contains(err.Error(), c.refused+" of the scheduler")):
			t.Errorf("%q: got %v", c.flags, err)
		case c.refused == "" && plan.Elects == slices.Contains(c.flags, "--leader_elect=False"):
			t.Errorf("%q: elects: %v", c.flags, plan.Elects)
		}
	}
}

// From 1.22 on, the flags for leader election apply in addition to a configuration.
func TestConvertFlags(t *testing.T) {
	args := []string{"--kube_api_qps=50", "--profiling", "--leader-elect-retry-period=1s",
		"--hard-pod-affinity-symmetric-weight=5"}
	for minor, want := range map[int]struct{ text, warning string }{
		21: {"a: 1\nclientConnection:\n  qps: 50\nenableProfiling: true\nleaderElection:\n  retryPeriod: 1s\n",
			"--hard-pod-affinity-symmetric-weight=5 has no effect any more"},
		24: {"a: 1\nclientConnection:\n  qps: 50\nenableProfiling: true\n", ""},
	} {
		rules := versions.Release{Major: 1, Minor: minor}.Rules()
		text, notes, warnings, err := convertFlags([]byte("a: 1\n"), nil, args, rules)
		if diff := cmp.Diff(want.text, string(text)); err != nil || diff != "" {
			t.Errorf("1.%d: %v (-want +got):\n%s", minor, err, diff)
		}
		if all := strings.Join(warnings, "\n"); !strings.Contains(all, want.warning) || (all == "") != (want.warning == "") ||
			len(notes) != strings.Count(want.text, "\n")-1-strings.Count(want.text, ":\n") {
			t.Errorf("1.%d: notes %q, warnings %q", minor, notes, warnings)
		}
	}
}

// The program normalizes the names of flags: a second --feature-gates would be another value.
func TestUpgradeChangesAFlagWithUnderscores(t *testing.T) {
	t.Parallel()
	n := withFlags(t, "--feature_gates=AllowInsecureBackendProxy=true,JobReadyPods=false")
	o := asks("", "default")
	o.FitGates = true
	plan, err := DryRun(t.Context(), n.deps(t), n.info(), o)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(plan.New.Data); strings.Count(text, "feature") != 1 ||
		!strings.Contains(text, "    - --feature-gates=JobReadyPods=false\n") {
		t.Errorf("got\n%s", text)
	}
}

func TestReplaceRefusesAProgramWithoutARelease(t *testing.T) {
	t.Parallel()
	n := newTestNode(t, "kubeadm")
	deps := n.deps(t)
	deps.CheckProgram = func(_ context.Context, _ configcheck.Binary, _ string, c deploy.ProgramCheck) error {
		_, err := c.Compare("Kubernetes v0.24.9", nil, "")
		return err
	}
	_, err := DryRun(t.Context(), deps, n.info(), asks("", "default"))
	if !problem.IsInvalid(err) || errors.As(err, new(*configcheck.FlagsError)) ||
		!strings.Contains(err.Error(), `--version prints "Kubernetes v0.24.9"`) {
		t.Errorf("got %v", err)
	}
}

// The kubelet runs a backup in its directory too, and may stop the pod of the other file for it.
func TestReplaceRefusesABackupInTheManifestDirectory(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{"kubeadm", "pmk"} {
		n := newTestNode(t, layout)
		n.write(t, n.layout.Manifest+".bak", n.original)
		before := n.state(t)
		_, err := n.run(t, asks("", "binpack"))
		if !problem.IsInvalid(err) ||
			!strings.Contains(err.Error(), n.layout.Manifest+".bak both define the pod kube-system/") {
			t.Errorf("%s: got %v", layout, err)
		}
		if diff := cmp.Diff(before, n.state(t)); diff != "" {
			t.Errorf("%s: changed (-before +after):\n%s", layout, diff)
		}
	}
}
