package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/preflight"
)

func TestChecksAreInSections(t *testing.T) {
	outcomes := []preflight.Outcome{
		{Name: "namespace-exists", Description: "namespace gpu exists", Status: preflight.Passed},
		{Name: "permission", Description: "can list secrets", Status: preflight.Failed, Detail: "cannot list secrets"},
		{Name: "port-free", Description: "port 10260 is free", Status: preflight.Unknown, Detail: "no permission"},
		{Name: deploy.ProblemCheck, Description: "known problem kubernetes#111803 of v1.24.3", Status: preflight.Warned,
			Detail: "leaks memory"},
	}
	want := `CLUSTER
passed   namespace gpu exists  
unknown  port 10260 is free    no permission

PERMISSIONS
failed  can list secrets  cannot list secrets

KNOWN PROBLEMS
warning  known problem kubernetes#111803 of v1.24.3  leaks memory
`
	if diff := cmp.Diff(want, command.Aligned(outcomeTable(outcomes))); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	if got, want := verdict(outcomes), "1 passed, 1 warning, 1 failed, 1 could not be checked"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
