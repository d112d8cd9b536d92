//go:build linux

package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
)

// marking is a plugin that creates a file as soon as a program with it starts.
const marking = `package marking

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

const Name = "Marking"

func init() { _ = os.WriteFile(%q, nil, 0o600) }

type Marking struct{}

func New(context.Context, scheduler.Arguments, scheduler.Handle) (*Marking, error) { return &Marking{}, nil }

func (*Marking) Name() string { return Name }

func (*Marking) Filter(context.Context, scheduler.State, *corev1.Pod, scheduler.NodeInfo) *scheduler.Status {
	return nil
}
`

// recordMarking records a scheduler with a plugin that the user of this machine has never seen. It
// returns the file that the plugin creates where it runs.
func recordMarking(t *testing.T, name, image, release string) (mark string) {
	t.Helper()
	dir := t.TempDir()
	mark = filepath.Join(dir, "mark")
	for file, text := range map[string]string{
		"go.mod":     "module example.com/marking\n\ngo 1.21\n",
		"marking.go": fmt.Sprintf(marking, mark),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	content, err := plugins.Archive(plugins.Plugin{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	record(t, name, image, release, v1alpha1.CustomSchedulerSpec{
		Image:  v1alpha1.Image{Reference: image},
		Source: v1alpha1.Source{Plugins: []v1alpha1.Plugin{{Path: "/home/someone/marking", Content: content}}},
	})
	return mark
}

// Whoever can write Secrets there writes the revision. Its code is not the user's.
func TestRecordedCodeIsNotRunWithoutConfirmation(t *testing.T) {
	pmkSched := kubeadmCluster(t)
	const name = "foreign"
	mark := recordMarking(t, name, "registry.example.com/s:"+apiserver.Release, apiserver.Release)
	for _, args := range [][]string{
		{"simulate", "upgrade", "--name", name, "--to", "v1.25.4"},
		{"simulate", "drain", "--name", name, controlPlane[0]},
		{"explain", "--name", name, "-n", "kube-system", "--exact", "kube-scheduler-" + controlPlane[0]},
		{"bench", "--name", name, "--pods", "2"},
		{"shadow", "--name", name, "--for", "1s"},
	} {
		t.Run(strings.Join(args[:2], " "), func(t *testing.T) {
			pmkSched(args...).Fails(t, 2, "revision 1 of "+name, "/home/someone/marking, sha256:",
				"refusing to run recorded code on this machine without confirmation", "--trust-recorded-plugins")
			if _, err := os.Stat(mark); err == nil {
				t.Error("the plugin of the revision was run")
			}
		})
	}
}
