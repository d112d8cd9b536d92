package render

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/versions"
)

// promtool runs promtool in a directory with files.
func promtool(t *testing.T, files map[string][]byte, args ...string) {
	t.Helper()
	program, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatalf("find promtool: %v (run make deps)", err)
	}
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %v: %v\n%s", args, err, out)
	}
}

// rulesOf returns the rules of a PrometheusRule as Prometheus reads them.
func rulesOf(t *testing.T, objects []*unstructured.Unstructured) []byte {
	t.Helper()
	at := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "PrometheusRule" })
	spec, _, err := unstructured.NestedMap(objects[at].Object, "spec")
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Each alert of testdata/alerts.yaml fires for its cause and not without it.
func TestAlertsFireForTheirCause(t *testing.T) {
	cases, err := os.ReadFile(filepath.Join("testdata", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	promtool(t, map[string][]byte{"rules.yaml": rulesOf(t, of(t, "v1.24.3", nil)), "alerts.yaml": cases}, "test", "rules",
		"alerts.yaml")
}

// Prometheus parses every query of the dashboards: as a rule that records it.
func TestQueriesOfEveryDashboardAreValid(t *testing.T) {
	var rules []any
	for minor := range 18 {
		release := versions.Release{Major: 1, Minor: 20 + minor}
		known, err := versions.Select(release)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range (monitored{Monitored{Name: "my-scheduler", Namespace: "kube-system", Release: release},
			known.Metrics}).panels() {
			for _, q := range p.queries {
				rules = append(rules, fields{"record": fmt.Sprintf("query:%d", len(rules)), "expr": q.expression})
			}
		}
	}
	text, err := yaml.Marshal(fields{"groups": []any{fields{"name": "queries", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	promtool(t, map[string][]byte{"queries.yaml": text}, "check", "rules", "--lint-fatal", "queries.yaml")
}
