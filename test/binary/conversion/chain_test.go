package conversion

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/documents"
	"github.com/pmk-sched/pmk-sched/versions"
)

// No release reads v1beta1 and anything newer than v1beta2, so only 1.22 can compare a v1beta1
// document with its conversion; later releases compare the next steps. The direct conversion, from
// v1beta1 to a config API of a release, must have the same effect as the steps.
func TestDirectConversionHasTheEffectOfSteps(t *testing.T) {
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
			var what []string
			var texts [][]byte
			for _, d := range all {
				for _, api := range documents.APIs(c.scheduler.Rules) {
					what = append(what, d.Name+": to "+api)
					texts = append(texts, c.steps(t, d, oldest, api)...)
				}
			}
			outcomes, err := c.scheduler.Effects(t.Context(), texts...)
			if err != nil {
				t.Fatal(err)
			}
			for i := range what {
				straight, stepped := outcomes[2*i], outcomes[2*i+1]
				if err := errors.Join(straight.Err, stepped.Err); err != nil {
					t.Errorf("%s: %v", what[i], err)
				} else if diff := cmp.Diff(filtering(t, stepped.Effect.Text), filtering(t, straight.Effect.Text)); diff != "" {
					t.Errorf("%s: the direct conversion differs from that in steps:\n%s", what[i], diff)
				}
			}
		})
	}
}

// steps converts a document directly to a config API, and to v1beta2 first.
func (c *comparison) steps(t *testing.T, d documents.Document, oldest versions.Release, api string) [][]byte {
	t.Helper()
	convert := func(api string, release versions.Release, source []byte) []byte {
		result, err := profiles.Convert(profiles.ConvertRequest{API: api, Release: release, Source: source,
			SourceName: d.Name})
		if err != nil {
			t.Fatalf("%s: to %s for %s: %v", d.Name, api, release, err)
		}
		return result.YAML
	}
	return [][]byte{convert(api, c.scheduler.Release, d.Text),
		convert(api, c.scheduler.Release, convert("v1beta2", oldest, d.Text))}
}

// filtering leaves out the plugins that run at PreFilter alone. A plugin that came to take part
// there in a later release, and that the document disables wherever v1beta1 has it, is disabled
// there too on the straight way; 1.22, where the steps pass, does not know that it ever will be.
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
