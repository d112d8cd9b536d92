package conversion

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/documents"
	"github.com/pmk-sched/pmk-sched/versions"
)

// No release reads v1beta1 and anything newer than v1beta2, so 1.22 checks the first conversion. From there the chain goes
// on through releases that judge the next step. Here the straight way, from v1beta1 to what a release reads, comes to the same as the
// way of judged steps.
func TestTheStraightWayIsTheWayOfSteps(t *testing.T) {
	known := read(t)
	oldest, err := versions.Parse("v1.22.2")
	if err != nil {
		t.Fatal(err)
	}
	for _, release := range releases(t) {
		if release.Minor == oldest.Minor {
			continue
		}
		t.Run(release.String(), func(t *testing.T) {
			c := newComparison(t, release)
			all := []documents.Document{}
			for _, d := range known {
				if d.API == "v1beta1" && !d.Lossy("v1beta2", release) {
					all = append(all, d)
				}
			}
			for seed := range uint64(generated) {
				all = append(all, documents.Generate("v1beta1", oldest.Minor, seed))
			}
			for _, d := range all {
				for _, api := range documents.APIs(c.scheduler.Rules) {
					c.steps(t, d, oldest, api)
				}
			}
		})
	}
}

// steps compares the effect of a document converted directly with that of one converted to v1beta2 first.
func (c *comparison) steps(t *testing.T, d documents.Document, oldest versions.Release, api string) {
	t.Helper()
	convert := func(api string, release versions.Release, source []byte) []byte {
		result, err := profiles.Convert(profiles.ConvertRequest{API: api, Release: release, Source: source, SourceName: d.Name})
		if err != nil {
			t.Fatalf("%s: to %s as %s reads it: %v", d.Name, api, release, err)
		}
		return result.YAML
	}
	straight := convert(api, c.scheduler.Release, d.Text)
	stepped := convert(api, c.scheduler.Release, convert("v1beta2", oldest, d.Text))
	one, err := c.scheduler.Effect(t.Context(), straight)
	if err != nil {
		t.Errorf("%s: straight to %s: %v\n%s", d.Name, api, err, straight)
		return
	}
	other, err := c.scheduler.Effect(t.Context(), stepped)
	if err != nil {
		t.Errorf("%s: in steps to %s: %v\n%s", d.Name, api, err, stepped)
		return
	}
	if diff := cmp.Diff(filtering(t, other.Text), filtering(t, one.Text)); diff != "" {
		t.Errorf("%s: to %s, the straight way is another than that of steps:\n%s", d.Name, api, diff)
	}
}

// filtering leaves out the plugins that run at PreFilter alone. A plugin that came to take part there in a later release, and that the
// document disables wherever v1beta1 has it, is disabled there too on the straight way; 1.22, where the steps pass, does not know that
// it ever will be.
func filtering(t *testing.T, effect string) map[string]any {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal([]byte(effect), &all); err != nil {
		t.Fatal(err)
	}
	profiles, _ := all["Profiles"].([]any)
	if len(profiles) == 0 {
		t.Fatalf("an effect without profiles: %s", effect)
	}
	for _, element := range profiles {
		running, _ := element.(map[string]any)["Running"].(map[string]any)
		filters, _ := running["Filter"].([]any)
		before, _ := running["PreFilter"].([]any)
		running["PreFilter"] = slices.DeleteFunc(before, func(name any) bool { return !slices.Contains(filters, name) })
	}
	return all
}
