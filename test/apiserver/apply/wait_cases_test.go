//go:build linux && cases

package apply_test

import (
	"errors"
	"testing"
)

func TestWaitStableSurvivesARestartOfTheAPIServer(t *testing.T) {
	ctx, client := testContext(t), newClient(t, server.Config())
	r := applied(ctx, t, client, "survivor", "")
	if err := r.status(ctx, true, running); err != nil {
		t.Fatal(err)
	}
	waited := make(chan error)
	go func() { waited <- client.WaitStable(ctx, r.ns, r.name, quick) }()
	if err := errors.Join(server.StopAPI(), server.StartAPI(ctx)); err != nil {
		t.Fatal(err)
	}
	// A leader that could not renew its lease has ended meanwhile, and was started again.
	if err := r.status(ctx, true, crashed); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
}
