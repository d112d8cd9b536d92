package fleet

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
)

// deployTo deploys to clusters, of which the named ones fail. It returns the clusters that were
// tried, and the states of all.
func deployTo(
	ctx context.Context, t *testing.T, fail string, o RolloutOptions, act func(cluster string),
) (tried, states []string, _ error) {
	t.Helper()
	var clusters []Cluster
	for name, wave := range map[string]string{"a": "2", "b": "1", "c": "10", "d": "2", "e": "1"} {
		clusters = append(clusters, Cluster{Name: name, Labels: map[string]string{"wave": wave}})
	}
	slices.SortFunc(clusters, func(a, b Cluster) int { return strings.Compare(a.Name, b.Name) })
	clusters[4].err = problem.Errorf("renew it", "its kubeconfig is damaged")
	o.OnTurn = func(turn Turn) { tried = append(tried, turn.Cluster) }
	s := &session.Session{Log: zap.NewNop(), OnStep: func(string) func(error) { return func(error) {} }}
	turns, err := roll(ctx, s, clusters, o, func(_ context.Context, _ *session.Session, turn *Turn) error {
		if act != nil {
			act(turn.Cluster)
		}
		if strings.Contains(fail, turn.Cluster) {
			return errors.New("broken")
		}
		turn.State = Done
		return nil
	})
	for _, turn := range turns {
		states = append(states, turn.Cluster+" "+string(turn.State))
	}
	return tried, states, err
}

func TestRolloutStopsAfterTooManyFailures(t *testing.T) {
	for name, c := range map[string]struct {
		fail    string
		most    int
		wave    string
		states  string
		message string
	}{
		"none may fail": {fail: "b", states: "a done, b failed, c pending, d pending, e pending",
			message: "1 of 5 clusters failed; stopped, 3 clusters were not tried"},
		"as many fail as may": {fail: "b", most: 1, states: "a done, b failed, c done, d done, e failed",
			message: "2 of 5 clusters failed"},
		"one more fails than may": {fail: "bc", most: 1, states: "a done, b failed, c failed, d pending, e pending",
			message: "2 of 5 clusters failed; stopped, 2 clusters were not tried"},
		"two may fail": {fail: "b", most: 2, states: "a done, b failed, c done, d done, e failed",
			message: "2 of 5 clusters failed"},
		"waves": {fail: "", wave: "wave", states: "b done, e failed, a pending, d pending, c pending",
			message: "1 of 5 clusters failed; stopped, 3 clusters were not tried"},
		"the last fails": {fail: "", states: "a done, b done, c done, d done, e failed", message: "1 of 5 clusters failed"},
	} {
		_, states, err := deployTo(t.Context(), t, c.fail, RolloutOptions{Wave: c.wave, MaxFailures: c.most}, nil)
		if got := strings.Join(states, ", "); got != c.states {
			t.Errorf("%s: got %s, want %s", name, got, c.states)
		}
		var failed *RolloutError
		if !errors.As(err, &failed) || failed.Error() != c.message {
			t.Errorf("%s: got error %v, want %s", name, err, c.message)
		}
	}
}

func TestInterruptedRolloutTriesNoOtherCluster(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tried, states, err := deployTo(ctx, t, "b", RolloutOptions{MaxFailures: 9}, func(cluster string) {
		if cluster == "b" {
			cancel()
		}
	})
	want := "a done, b failed, c pending, d pending, e pending"
	if got := strings.Join(states, ", "); got != want || len(tried) != 2 || !errors.Is(err, context.Canceled) {
		t.Errorf("got %s, tried %v, %v; want %s", got, tried, err, want)
	}
}
