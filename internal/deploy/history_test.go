package deploy

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/profiles"
)

func TestHistoryDescribesEachRevision(t *testing.T) {
	plugin := func(o *PlanInput) {
		o.Plugins = []profiles.Plugin{{Name: "MyPlugin", Points: []string{"filter"}}}
		o.Spec.Configuration.Preset = "binpack"
	}
	third := failed(revision(t, 3, "v1.24.3", port(10300)))
	third.Origin = "rollback to revision 1"
	fourth := revision(t, 4, "v1.24.3", nil)
	fourth.Objects, fourth.Damage = nil, errors.New("decode: unexpected end of JSON input")
	got := history(t, []*apply.Revision{revision(t, 1, "v1.23.17", nil), revision(t, 2, "v1.24.3", plugin), third,
		fourth})
	for i := range got {
		got[i].Configuration = contentHash.ReplaceAllString(got[i].Configuration, "-HASH")
	}
	digest := "sha256:" + strings.Repeat("0123", 16)
	describe := func(release string) string {
		return release + ", image registry.example.com/s:" + release + "@" + digest +
			", configuration kubescheduler.config.k8s.io/v1beta3, credentials serviceaccount"
	}
	want := []HistoryEntry{
		{
			Revision: 1, Time: now, By: "root@node-1", Status: apply.Deployed, Release: "v1.23.17",
			Image: "registry.example.com/s:v1.23.17", Digest: digest,
			Configuration: "my-scheduler-config-HASH", Description: describe("v1.23.17"),
		},
		{
			Revision: 2, Time: now, By: "root@node-1", Status: apply.Deployed, Release: "v1.24.3",
			Image: "registry.example.com/s:v1.24.3", Digest: digest,
			Configuration: "my-scheduler-config-HASH", Plugins: []string{"MyPlugin"}, Description: describe("v1.24.3"),
		},
		{
			Revision: 3, Time: now, By: "root@node-1", Status: apply.Failed, Release: "v1.24.3",
			Image: "registry.example.com/s:v1.24.3", Digest: digest,
			Configuration: "my-scheduler-config-HASH", Description: describe("v1.24.3"), Origin: "rollback to revision 1",
			Reason: "not stable\nlog lines",
		},
		{
			Revision: 4, Time: now, By: "root@node-1", Status: DamagedRevision, Current: true, Description: describe("v1.24.3"),
			Reason: "decode: unexpected end of JSON input",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

func history(t *testing.T, revisions []*apply.Revision) []HistoryEntry {
	t.Helper()
	entries, err := History(t.Context(), infos(revisions), reading(revisions))
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestHistoryMarksTheCurrentRevision(t *testing.T) {
	got := history(t, []*apply.Revision{revision(t, 1, "v1.24.3", nil), revision(t, 2, "v1.24.3", port(10300)),
		failed(revision(t, 3, "v1.24.3", nil))})
	for i, want := range []bool{false, true, false} {
		if got[i].Current != want {
			t.Errorf("revision %d is current: %t", i+1, got[i].Current)
		}
	}
}
