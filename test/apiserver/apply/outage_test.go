//go:build linux && cases

package apply_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
)

func TestApplyGoesOnWhenTheAPIServerComesBack(t *testing.T) {
	config, failed := server.Config(), make(chan struct{}, 1)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return apiserver.RoundTrip(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err != nil {
				select {
				case failed <- struct{}{}:
				default: // it has failed before
				}
			}
			return response, err
		})
	})
	ctx, client, ns := testContext(t), newClient(t, config), server.Namespace(t)
	if _, err := client.Plan(ctx, objects(t, "back", ns, "a")); err != nil {
		t.Fatal(err)
	}
	if err := server.StopAPI(); err != nil {
		t.Fatal(err)
	}
	type result struct {
		changes apply.ChangeSet
		err     error
	}
	applied := make(chan result)
	go func() {
		changes, err := client.Apply(ctx, objects(t, "back", ns, "a"))
		applied <- result{changes, err}
	}()
	select {
	case <-failed:
	case <-ctx.Done():
		t.Fatal("no request fails")
	}
	if err := server.StartAPI(ctx); err != nil {
		t.Fatal(err)
	}
	got := <-applied
	if got.err != nil || strings.Count(got.changes.String(), " created\n") != 7 {
		t.Errorf("after the outage: %v\n%s", got.err, got.changes)
	}
	again, err := client.Apply(ctx, objects(t, "back", ns, "a"))
	if err != nil || again.Changed() {
		t.Errorf("second run: %v\n%s", err, again)
	}
}

func TestApplyGivesUpCleanlyWhenTheAPIServerStaysAway(t *testing.T) {
	client := newClient(t, server.Config(), func(o *apply.Options) { o.Patience = 2 * time.Second })
	ctx, ns := testContext(t), server.Namespace(t)
	objs := objects(t, "away", ns, "a")
	if _, err := client.Plan(ctx, objs); err != nil {
		t.Fatal(err)
	}
	if err := server.StopAPI(); err != nil {
		t.Fatal(err)
	}
	changes, err := client.Apply(ctx, objs)
	if startErr := server.StartAPI(ctx); startErr != nil {
		t.Fatal(startErr)
	}
	var unreachable *kubeapi.UnreachableError
	if !errors.As(err, &unreachable) || unreachable.Cause != kubeapi.CauseRefused || len(changes) > 0 {
		t.Fatalf("error is %v", err)
	}
	if !strings.Contains(err.Error(), "(retried for 2s): the API server "+server.Config().Host+": connection refused") {
		t.Errorf("error is %q", err)
	}
	if changes, err := client.Apply(ctx, objs); err != nil || strings.Count(changes.String(), " created\n") != 7 {
		t.Errorf("a rerun: %v\n%s", err, changes)
	}
}
