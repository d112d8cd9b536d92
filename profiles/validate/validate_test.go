package validate

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// testdata contains the results of the decoding and validation packages of each release; startup is
// not part of them.
func TestRulesMatchEveryDecoder(t *testing.T) {
	text, err := os.ReadFile("testdata/decoders.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name, Document string
		Accepted       map[string]string
	}
	if err := yaml.UnmarshalStrict(text, &cases); err != nil || len(cases) != 20 {
		t.Fatalf("%d documents, %v", len(cases), err)
	}
	for _, c := range cases {
		for _, a := range schema.APIs() {
			first, last := 0, 0
			if accepted := c.Accepted[a.Name]; accepted != "" {
				if _, err := fmt.Sscanf(accepted, "%d-%d", &first, &last); err != nil {
					t.Fatalf("%s: %q: %v", c.Name, accepted, err)
				}
			}
			for minor := 20; minor <= 37; minor++ {
				source := "apiVersion: " + a.GroupVersion() + "\nkind: KubeSchedulerConfiguration\n" + c.Document + "\n"
				v := newTestValidator(t, source, versions.Release{Major: 1, Minor: minor})
				wrong := !v.checkVersion() || v.checkFields() || v.checkValues()
				if want := first <= minor && minor <= last; wrong == want {
					t.Errorf("%s in %s at 1.%d: accepted is %v, want %v: %v", c.Name, a.Name, minor, !wrong, want, v.problems)
				}
			}
		}
	}
}

// testdata has what the real scheduler does, also when it initializes the plugins.
func TestRulesMatchTheScheduler(t *testing.T) {
	text, err := os.ReadFile("testdata/v1.24.3.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Document string
		Accepted []string
	}
	if err := yaml.UnmarshalStrict(text, &cases); err != nil || len(cases) < 200 {
		t.Fatalf("%d documents, %v", len(cases), err)
	}
	release := versions.Release{Major: 1, Minor: 24, Patch: 3}
	for _, c := range cases {
		for _, api := range []string{"v1beta2", "v1beta3"} {
			source := "apiVersion: " + schema.ConfigGroup + "/" + api + "\nkind: KubeSchedulerConfiguration\n" + c.Document
			doc, err := schema.Read("f.yaml", []byte(source), false)
			if err != nil {
				t.Fatal(err)
			}
			rejected, _ := Document(doc, Options{Release: release, Rules: release.Rules()}).Split()
			if accepted := len(rejected) == 0; accepted != slices.Contains(c.Accepted, api) {
				t.Errorf("%s in %s: accepted is %v: %v", c.Document, api, accepted, rejected)
			}
		}
	}
}

func newTestValidator(t *testing.T, source string, release versions.Release) *validator {
	t.Helper()
	rules, err := versions.Select(release)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := schema.Read("f.yaml", []byte(source), false)
	if err != nil {
		t.Fatal(err)
	}
	return newValidator(doc, Options{Release: release, Rules: rules})
}
