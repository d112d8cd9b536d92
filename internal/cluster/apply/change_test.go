package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChangeSetTellsALinePerObject(t *testing.T) {
	set := ChangeSet{
		{Object: "ClusterRoleBinding/x", Action: Unchanged},
		{Object: "Deployment/a/x", Action: Configured, Note: "reverts changes of others", Diff: "-a\n+b\n"},
		{Object: "ConfigMap/a/x", Action: Created, Diff: "+c\n"},
	}
	want := "ClusterRoleBinding/x unchanged\nDeployment/a/x configured (reverts changes of others)\nConfigMap/a/x " +
		"created\n"
	if diff := cmp.Diff(want, set.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if got := set.Summary(); got != "Deployment/a/x configured, ConfigMap/a/x created" {
		t.Errorf("summary %q", got)
	}
	if diff := cmp.Diff("-a\n+b\n+c\n", set.Diff()); diff != "" {
		t.Errorf("diff (-want +got):\n%s", diff)
	}
}

func TestChangeSetKnowsWhetherAnythingChanges(t *testing.T) {
	for action, want := range map[Action]bool{
		Created: true, Configured: true, Recreated: true, Deleted: true, Unchanged: false, Absent: false, Skipped: false,
	} {
		if got := (ChangeSet{{Action: Unchanged}, {Action: action}}).Changed(); got != want {
			t.Errorf("%s: changed is %t", action, got)
		}
	}
	if (ChangeSet)(nil).Changed() {
		t.Error("no objects are a change")
	}
}
