package fleet

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
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
		failed := map[string][]string{"e": {"renew it"}}[turn.Cluster]
		if turn.State == Failed && (turn.Error == "" || !slices.Equal(turn.Hints, failed)) {
			t.Errorf("%s failed with %q, hints %q", turn.Cluster, turn.Error, turn.Hints)
		}
	}
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
		tried, states, err := deployTo(t.Context(), t, c.fail, RolloutOptions{Wave: c.wave, MaxFailures: c.most}, nil)
		if got := strings.Join(states, ", "); got != c.states {
			t.Errorf("%s: got %s, want %s", name, got, c.states)
		}
		if pending := strings.Count(c.states, "pending"); len(tried) != len(states)-pending {
			t.Errorf("%s: %v are reported, and %d are pending", name, tried, pending)
		}
		var failed *RolloutError
		if !errors.As(err, &failed) || failed.Error() != c.message {
			t.Errorf("%s: got error %v, want %s", name, err, c.message)
		}
	}
}

// Each cluster is upgraded with the options of the rollout and with a copy of the spec.
func TestUpgradesOfAFleetAreDeployedAsTheOptionsSay(t *testing.T) {
	sp, err := spec.Read(spec.Flags{Name: "my-scheduler", Namespace: "team"})
	if err != nil {
		t.Fatal(err)
	}
	verified := errors.New("verified")
	o := RolloutOptions{Deploy: deploy.RunOptions{Timeout: 7 * time.Minute, StableFor: 3 * time.Second, NoRollback: true,
		Verify: func(context.Context, *deploy.Plan) error { return verified }}}
	got := o.upgrade(lifecycle.UpgradeOptions{Spec: sp, Base: "base", Busybox: "busybox"})
	if got.Deploy.Timeout != o.Deploy.Timeout || got.Deploy.StableFor != o.Deploy.StableFor || !got.Deploy.NoRollback ||
		!errors.Is(got.Deploy.Verify(t.Context(), nil), verified) {
		t.Errorf("got the options %+v", got.Deploy)
	}
	if got.Spec == sp || got.Spec.Name != sp.Name || got.Spec.Namespace != sp.Namespace || got.Base != "base" ||
		got.Busybox != "busybox" {
		t.Errorf("got %+v", got)
	}
}

func TestTurnHasTheChangesOfItsCluster(t *testing.T) {
	same := apply.Change{Object: "ConfigMap/ns/same", Action: apply.Unchanged}
	changed := apply.Change{Object: "Deployment/ns/a", Action: apply.Configured}
	for _, c := range []struct {
		changes apply.ChangeSet
		want    Turn
	}{
		{apply.ChangeSet{same}, Turn{State: Unchanged, Revision: 3}},
		{apply.ChangeSet{same, changed, same},
			Turn{State: Done, Revision: 3, Changes: []string{"Deployment/ns/a " + string(apply.Configured)}}},
	} {
		var got Turn
		got.record(&deploy.Outcome{Revision: 3, Changes: c.changes})
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.changes, diff)
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
