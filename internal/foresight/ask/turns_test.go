package ask

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

func TestClientsGetTurnsInRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var queue turns
		if err := queue.take(t.Context(), "first"); err != nil {
			t.Fatal(err)
		}
		var got []string
		var all sync.WaitGroup
		wait := func(ctx context.Context, client string) {
			all.Go(func() {
				if queue.take(ctx, client) == nil {
					got = append(got, client) // only who has the turn
					queue.end()
				}
			})
			synctest.Wait()
		}
		hangsUp, hangUp := context.WithCancel(t.Context())
		for range 3 {
			wait(t.Context(), "greedy")
		}
		wait(hangsUp, "lost")
		wait(t.Context(), "modest")
		wait(t.Context(), "modest")
		hangUp()
		synctest.Wait()
		queue.end()
		all.Wait()
		if want := []string{"greedy", "modest", "greedy", "modest", "greedy"}; !slices.Equal(got, want) {
			t.Errorf("turns of %q, want %q", got, want)
		}
		if queue.taken || len(queue.order)+len(queue.waiting) > 0 {
			t.Errorf("after all turns: %+v", &queue)
		}
	})
}

// A turn that is granted to a client that has gone is passed on.
func TestNoTurnIsLost(t *testing.T) {
	var queue turns
	if err := queue.take(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { left <- queue.take(ctx, "b") }()
		go cancel()
		queue.end()
		if <-left == nil {
			queue.end()
		}
		cancel()
		if err := queue.take(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
}
