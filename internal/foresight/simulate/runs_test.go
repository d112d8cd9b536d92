package simulate

import (
	"errors"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
)

// unreadable are objects that cannot be read.
type unreadable struct{ err error }

func (u unreadable) Each(func(*snapshot.Kind, string, map[string]any) error) error { return u.err }

// A simulation runs only as often as it has not run yet, and one that fails leaves its API server
// to the next.
func TestASimulationKeepsItsResults(t *testing.T) {
	servers, err := NewServers(&session.Session{}, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := servers.Close(); err != nil {
			t.Error(err)
		}
	}()
	runs, broken := NewRuns(servers), errors.New("broken")
	m := &Simulation{
		Snapshot:  &capture.Snapshot{Header: &snapshot.Header{}, Objects: unreadable{broken}},
		Scenarios: []scenario.Scenario{scenario.Pending()},
		results:   []*report.Report{{Scenario: "first"}, {Scenario: "second"}},
	}
	for n := range 3 {
		got, err := runs.Results(t.Context(), m, n)
		if err != nil || len(got) != n {
			t.Errorf("%d runs: %d results, %v", n, len(got), err)
		}
	}
	for range 2 {
		if _, err := runs.Results(t.Context(), m, 3); !errors.Is(err, broken) {
			t.Errorf("the third run: %v", err)
		}
	}
}
