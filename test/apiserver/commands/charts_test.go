//go:build linux

package commands

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/test/internal/helm"
)

func TestChartsPassHelmLint(t *testing.T) {
	out := helm.Run(t, "lint", "--strict", helm.Chart(t))
	if strings.Contains(out, "[WARNING]") || strings.Contains(out, "[ERROR]") {
		t.Error(out)
	}
}

func TestChartsRenderWhatRenderPrints(t *testing.T) {
	for name, args := range map[string][]string{
		"default":  nil,
		"preset":   {"--preset", "binpack", "--replicas", "2"},
		"of 1.20":  {"--branch", "v1.20.15", "--replicas", "3", "--credentials", "serviceaccount"},
		"any node": {"--node-selector", "any", "--credentials", "serviceaccount"},
	} {
		t.Run(name, func(t *testing.T) {
			got := chartObjects(t, helm.Run(t, "template", "release", helm.Chart(t, args...), "-n", "kube-system",
				"--skip-tests"))
			if diff := cmp.Diff(chartObjects(t, helm.Render(t, args...)), got); diff != "" {
				t.Errorf("-render +helm template:\n%s", diff)
			}
		})
	}
}

// chartObjects returns the objects in YAML documents by kind and name.
func chartObjects(t *testing.T, text string) map[string]any {
	t.Helper()
	all := map[string]any{}
	for document := range strings.SplitSeq("\n"+text, "\n---\n") {
		var object struct {
			Kind     string
			Metadata struct{ Name string }
		}
		var content map[string]any
		if err := yaml.Unmarshal([]byte(document+"\n"), &object); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal([]byte(document+"\n"), &content); err != nil {
			t.Fatal(err)
		}
		if content != nil {
			all[object.Kind+"/"+object.Metadata.Name] = content
		}
	}
	return all
}
