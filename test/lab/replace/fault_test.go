//go:build linux

package replace

import (
	"regexp"
	"slices"
	"syscall"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// A replacement that cannot work is refused before anything is changed.
func TestReplaceRefusesWhatCannotWork(t *testing.T) {
	n := unchanged(t, labs.Shared(t, lab.LayoutKubeadm), manifests[lab.LayoutKubeadm])
	unknown := run.WriteFile(t, "unknown.yaml",
		"apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\nprofiles:\n- plugins: {score: "+
			"{enabled: [{name: NoSuchPlugin}]}}\n")
	for name, c := range map[string]struct {
		args  []string
		texts []string
	}{
		"image missing": {[]string{"--image", "localhost/not-there:v1"},
			[]string{"localhost/not-there:v1", "--load containerd"}},
		"unknown plugin": {[]string{"--image", n.Image(t, "timestamp"), "--config", unknown}, []string{"NoSuchPlugin"}},
		"wrong minor": {[]string{"--image", n.Faulty(t, "crash", "v1.25.4")},
			[]string{"v1.25.4", "v1.24.3"}},
		"nothing to do": {nil, []string{"--image"}},
	} {
		t.Run(name, func(t *testing.T) { n.replace(t, c.args...).Fails(t, 2, c.texts...) })
	}
	n.isOriginal(t)
}

// failure is a scheduler that fails after it was swapped in.
type failure struct {
	name, behaviour, layout string
	args                    []string
	patterns                []string // of the messages
}

// isReverted replaces the default scheduler by one that fails: the old one runs again, and the API
// server was not touched.
func (f failure) isReverted(t *testing.T) {
	n := exclusive(t, f.layout)
	image, kept := n.Faulty(t, f.behaviour, n.Release), n.keepsAPIServer(t)
	failed := n.PMKSched(t, append([]string{"replace", "--yes", "--image", image}, f.args...)...)
	failed.Fails(t, 1, "✓ undo swap", "manifest is restored")
	for _, pattern := range f.patterns {
		if !regexp.MustCompile(pattern).MatchString(failed.Stderr) {
			t.Errorf("no message matches %q: %s", pattern, failed)
		}
	}
	n.isOriginal(t)
	kept()
	n.PMKSched(t, "status").OK(t)
}

// nearEnd are the steps after which only the journal is written: a signal may find that the process
// has ended.
func nearEnd() []string { return []string{"wait until stable", "mark replaced"} }

// restoredOrResumed kills a replacement after a step and takes each of the two ways on.
func restoredOrResumed(t *testing.T, n *node, step string) {
	t.Helper()
	image := n.Image(t, "timestamp")
	kill := func() {
		t.Helper()
		r := n.AtStep(t, step, labs.Signal(t, syscall.SIGKILL), n.replaceArgs("--image", image)...)
		if r.Code == 0 && !slices.Contains(nearEnd(), step) {
			t.Fatalf("the command was not killed: %s", r)
		}
	}
	kill()
	if step == "swap" { // before the journal is written nothing is unfinished
		n.PMKSched(t, "status").Fails(t, 3, "[replacement-unfinished]", "it stopped at step")
	}
	n.restore(t)
	n.PMKSched(t, "status").OK(t)
	kill()
	n.replace(t, "--image", image).OK(t)
	n.PMKSched(t, "status").OK(t)
	n.PMKSched(t, "verify", "--default").OK(t)
	n.restore(t)
}
