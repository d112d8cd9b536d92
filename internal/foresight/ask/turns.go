package ask

import (
	"context"
	"slices"
	"sync"
)

// turns grants one turn after the other. Clients that wait get them in rotation, so that one that
// asks much does not delay the others. The zero value is ready to use.
type turns struct {
	mu    sync.Mutex
	taken bool
	// order are the clients that wait, the next one first, and waiting are their questions.
	order   []string
	waiting map[string][]chan struct{}
}

// join waits for a turn, which the caller must end: the channel is closed when it has it.
func (t *turns) join(client string) (granted chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	granted = make(chan struct{})
	if !t.taken {
		t.taken = true
		close(granted)
		return granted
	}
	if t.waiting == nil {
		t.waiting = map[string][]chan struct{}{}
	}
	if len(t.waiting[client]) == 0 {
		t.order = append(t.order, client)
	}
	t.waiting[client] = append(t.waiting[client], granted)
	return granted
}

// take waits for a turn, which the caller must end, or until ctx ends.
func (t *turns) take(ctx context.Context, client string) error {
	granted := t.join(client)
	select {
	case <-granted:
		return nil
	case <-ctx.Done():
		t.leave(client, granted)
		return ctx.Err()
	}
}

// leave gives up a place, or the turn if it was granted meanwhile.
func (t *turns) leave(client string, granted chan struct{}) {
	t.mu.Lock()
	at := slices.Index(t.waiting[client], granted)
	if at >= 0 {
		t.waiting[client] = slices.Delete(t.waiting[client], at, at+1)
		if len(t.waiting[client]) == 0 {
			delete(t.waiting, client)
			t.order = slices.DeleteFunc(t.order, func(one string) bool { return one == client })
		}
	}
	t.mu.Unlock()
	if at < 0 {
		t.end()
	}
}

// end ends a turn, and grants the next one.
func (t *turns) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.order) == 0 {
		t.taken = false
		return
	}
	client := t.order[0]
	t.order = t.order[1:]
	granted := t.waiting[client][0]
	if t.waiting[client] = t.waiting[client][1:]; len(t.waiting[client]) > 0 {
		t.order = append(t.order, client)
	} else {
		delete(t.waiting, client)
	}
	close(granted)
}
