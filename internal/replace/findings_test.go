package replace

import (
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
)

func TestDriftOfTheNodesFilesIsAFindingWithTheDiff(t *testing.T) {
	f := nodeFinding(&DriftError{Here: &HereStatus{Node: "node-1",
		Drift: []Drift{{Path: "/manifest", What: "edited", Diff: "-a\n+b\n"}}}})
	if f.Code != health.NodeFilesDrifted || f.Name != "node-1" || strings.Contains(f.Text, "\n") ||
		f.Detail != "/manifest: edited\n-a\n+b" || f.Hint == "" {
		t.Errorf("got %+v", f)
	}
}

func TestInterruptedReplacementIsAFinding(t *testing.T) {
	f := nodeFinding(&DriftError{Here: &HereStatus{Node: "node-1", State: staticpod.Started, Step: "swap"}})
	if f.Code != health.ReplaceUnfinished || !strings.Contains(f.Text, `stopped at step "swap"`) {
		t.Errorf("got %+v", f)
	}
}

func TestReplacedDefaultSchedulerOfAnotherMinorIsAFinding(t *testing.T) {
	for _, tc := range []struct {
		name, image string
		replaced    bool
		want        string
	}{
		{"same release", "localhost/s:v1.25.4", true, ""},
		{"other patch", "localhost/s:v1.25.0", true, ""},
		{"one minor behind", "localhost/s:v1.24.3", true, "is v1.24.3, the API server is v1.25.4"},
		{"not replaced", "registry.example.com/kube-scheduler:v1.24.3", false, ""},
		{"no release in the tag", "localhost/s:mine", true, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			found := replacedFindings(NodeStatus{Node: "node-1", Replaced: tc.replaced, Ready: true, Image: tc.image}, "v1.25.4")
			if tc.want == "" && len(found) > 0 || tc.want != "" &&
				(len(found) != 1 || found[0].Code != health.ReleaseSkew || !strings.Contains(found[0].Text, tc.want)) {
				t.Errorf("got %+v, want %q", found, tc.want)
			}
		})
	}
}
