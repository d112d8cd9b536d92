package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
)

func printInfo(t *testing.T, info *inspect.Info) string {
	t.Helper()
	var out bytes.Buffer
	u := newUI(nil, &out, &out)
	if err := u.Data("table", info, infoTable(info)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestDetectTable(t *testing.T) {
	text, err := os.ReadFile("../../internal/cluster/inspect/testdata/pmk.json")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/detect.golden")
	if err != nil {
		t.Fatal(err)
	}
	info := &inspect.Info{}
	if err := json.Unmarshal(text, info); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), printInfo(t, info)); diff != "" {
		t.Errorf("table of testdata/detect.golden (-want +got):\n%s", diff)
	}
}

func TestDetectTableListsDeployedSchedulersAndMissingCredentials(t *testing.T) {
	info := &inspect.Info{Scheduler: inspect.Scheduler{Deployed: []inspect.DeployedScheduler{
		{Name: "pushed", Namespace: "gpu", Release: "v1.23.17", Due: "v1.24.3"}, {Name: "unknown"},
	}}}
	table := strings.Join(strings.Fields(printInfo(t, info)), " ")
	for _, text := range []string{"pushed gpu v1.23.17 v1.24.3", "unknown - -", "not on a control-plane node"} {
		if !strings.Contains(table, text) {
			t.Errorf("the table lacks %q:\n%s", text, table)
		}
	}
}

func TestDetectTableListsAProblemOfAReleaseAndItsSchedulersOnce(t *testing.T) {
	problem := func(scheduler, release, issue, when string) inspect.KnownProblem {
		return inspect.KnownProblem{Scheduler: scheduler, Release: release, Issue: issue, Effect: "pods stay pending",
			When: when, Fix: "v1.26.0"}
	}
	table := printInfo(t, &inspect.Info{KnownProblems: []inspect.KnownProblem{
		problem("", "v1.24.3", "kubernetes#1", "if plugin X runs"), problem("", "v1.24.3", "kubernetes#2", ""),
		problem("gpu/a", "v1.24.3", "kubernetes#1", ""), problem("gpu/b", "v1.24.3", "kubernetes#1", ""),
		problem("gpu/old", "v1.23.17", "kubernetes#1", ""),
	}})
	want := `KNOWN PROBLEMS
- v1.24.3, gpu/a, gpu/b: if plugin X runs, pods stay pending (kubernetes#1; fixed in v1.26.0)
- v1.24.3: pods stay pending (kubernetes#2; fixed in v1.26.0)
- v1.23.17, gpu/old: pods stay pending (kubernetes#1; fixed in v1.26.0)
`
	if !strings.Contains(table, want) {
		t.Errorf("got\n%s\nwant\n%s", table, want)
	}
}

func TestDetectTableSaysWhatPlacesGangs(t *testing.T) {
	info := &inspect.Info{Gangs: &inspect.Gangs{API: "scheduling.k8s.io/v1beta1", Gates: []string{"GenericWorkload"},
		Served: true}}
	if table := strings.Join(strings.Fields(printInfo(t, info)), " "); !strings.Contains(table,
		"Gangs scheduling.k8s.io/v1beta1 is served; it needs a scheduler with --feature-gates=GenericWorkload=true") {
		t.Errorf("table:\n%s", table)
	}
}
