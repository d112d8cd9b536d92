package deploy

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
)

// A chart does not contain the credentials of a node: compared with the plan of this node, every
// Helm release would differ.
func TestDiffOfAHelmReleaseComparesWithItsChart(t *testing.T) {
	plan, err := PlanInput{Name: "my-scheduler", Facts: Facts{Cluster: masterInfo("v1.24.3"), Node: nodeCredentials(),
		Image: "localhost/my-scheduler:v1", Now: now}}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	own := names(plan.Objects)
	if plan.Scheduler.Credentials.Mode != CredentialsNode || !strings.Contains(own, "Secret/") {
		t.Fatalf("credentials %s: %s", plan.Scheduler.Credentials.Mode, own)
	}
	chart, _, err := chartPlan(plan)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{byHelm: append(slices.Clone(chart.Objects), object("ConfigMap", "my-scheduler-config-old"),
		object("ClusterRole", "my-scheduler-plugins"))}
	d := deps(r)
	var notes []string
	d.Note = func(text string) { notes = append(notes, text) }
	changes, err := Diff(t.Context(), d, plan)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"plan helm " + names(chart.Objects)}
	if diff := cmp.Diff(want, r.calls); diff != "" || strings.Contains(want[0], "Secret/") {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(apply.ChangeSet{{Object: "ClusterRole/kube-system/my-scheduler-plugins", Action: apply.Deleted}},
		changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "Helm installed scheduler my-scheduler") {
		t.Errorf("notes %q", notes)
	}
	if names(plan.Objects) != own {
		t.Errorf("the plan has changed: %s", names(plan.Objects))
	}
}

// The names of ConfigMaps change with their contents: a diff shows the changed lines.
func TestDiffComparesWithTheConfigMapInUse(t *testing.T) {
	configMap := func(name, content string) *unstructured.Unstructured {
		o := object("ConfigMap", name)
		o.Object["data"] = map[string]any{"scheduler.yaml": "weight: " + content + "\nkept: true\n"}
		return o
	}
	deployment := object("Deployment", "s")
	deployment.Object["spec"] = map[string]any{"volumes": []any{map[string]any{"name": "s-config-2"}}}
	installed := []*unstructured.Unstructured{configMap("s-config-1", "1"), configMap("s-config-2", "5"),
		configMap("s-kubeconfig-2", "5"), deployment}
	wanted := configMap("s-config-3", "3")
	for _, action := range []apply.Action{apply.Created, apply.Unchanged} {
		changes := apply.ChangeSet{{Object: objectName(wanted), Action: action, Diff: "all lines"}}
		if err := compareContents(changes, []*unstructured.Unstructured{wanted}, installed); err != nil {
			t.Fatal(err)
		}
		if text := changes.Diff(); !strings.Contains(text, "-    weight: 5\n+    weight: 3\n     kept: true\n") {
			t.Errorf("%s: got %s", action, text)
		}
	}
	same := apply.ChangeSet{{Object: objectName(installed[1]), Action: apply.Unchanged}}
	if err := compareContents(same, installed[1:2], installed); err != nil || same.Diff() != "" {
		t.Errorf("the same ConfigMap: got %s, %v", same.Diff(), err)
	}
}

func TestDiffOfARevisionWithoutARequestWithAHelmReleaseFails(t *testing.T) {
	revision := revision(t, 1, "v1.24.3", func(o *PlanInput) { o.Spec.Credentials = CredentialsNode })
	plan, err := PlanOf(revision)
	if err != nil {
		t.Fatal(err)
	}
	plan.Request = nil
	if _, err := Diff(t.Context(), deps(&recorder{byHelm: plan.Objects}), plan); !problem.IsInvalid(err) ||
		!strings.Contains(err.Error(), "does not record its request") {
		t.Errorf("got %v", err)
	}
}

// deploy does not replace a scheduler that Helm installed: its dry run fails where deploy would.
func TestDryRunIsThatOfDeployAlsoForAHelmRelease(t *testing.T) {
	plan := testPlan(t)
	r := &recorder{byHelm: slices.Clone(plan.Objects)}
	if _, err := DryRun(t.Context(), deps(r), plan); err != nil {
		t.Fatal(err)
	}
	if last := r.calls[len(r.calls)-1]; last != "plan "+names(plan.Objects) {
		t.Errorf("calls %q", r.calls)
	}
}
