package shadow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
)

// initialEventsEnd is the annotation on the bookmark that ends a watch's initial events.
const initialEventsEnd = "k8s.io/initial-events-end"

// ahead is the number of pod events that are read before the shadow has decided about earlier pods.
// The API server closes a watch that is not read (staging/src/k8s.io/apiserver/pkg/storage/cacher),
// and keeps events for minutes only.
const ahead = 10000

// settleTime is the time for the shadow, which has nothing else to do, to process an event.
const settleTime = 100 * time.Millisecond

// stream passes the events in a pod watch to the shadow.
type stream struct {
	proxy *proxy
	to    io.Writer
	flush func()
	// synced is set when the shadow has all initial pods: it does not decide before.
	synced bool
	// since is the cluster version that it has then.
	since string
	// passed is when the last change to a pod was passed to the shadow.
	passed time.Time
}

// watch reads events until the watch ends.
func (s *stream) watch(ctx context.Context, from io.Reader) error {
	s.flush()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := make(chan json.RawMessage, ahead)
	broken := make(chan error, 1)
	go func() {
		defer close(events)
		broken <- readAhead(ctx, from, events)
	}()
	if s.synced {
		if err := s.begin(ctx); err != nil {
			return err
		}
	}
	for line := range events {
		var event struct {
			Type   string
			Object map[string]any
		}
		if err := decode(line, &event); err != nil {
			return fmt.Errorf("read the watch of pods: %w", err)
		}
		if err := s.event(ctx, event.Type, event.Object); err != nil {
			return err
		}
	}
	return <-broken
}

// readAhead reads events until the watch ends.
func readAhead(ctx context.Context, from io.Reader, events chan<- json.RawMessage) error {
	d := json.NewDecoder(from)
	for {
		var line json.RawMessage
		switch err := d.Decode(&line); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return fmt.Errorf("read the watch of pods: %w", err)
		}
		select {
		case events <- line:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// begin asks the shadow about the pods that the observed scheduler had found no node for before. It
// waits until the shadow decides at all.
func (s *stream) begin(ctx context.Context) error {
	s.proxy.judge.watches()
	if err := s.rehearse(ctx); err != nil {
		return err
	}
	for _, one := range s.proxy.waiting() {
		if s.proxy.judge.refused(one.uid) {
			continue // listed twice
		}
		if s.since != "" {
			one.after = s.since
		}
		if err := s.proxy.judge.decide(ctx, s, one, ""); err != nil {
			return err
		}
	}
	return nil
}

// rehearse asks the shadow about a pod that fits on no node. It answers when it has read all
// objects.
func (s *stream) rehearse(ctx context.Context) error {
	select {
	case <-s.proxy.ready:
		return nil
	default:
	}
	one := probe(s.since)
	for {
		switch a, err := s.proxy.judge.ask(ctx, s, one, 0); {
		case err != nil:
			return err
		case !a.undecided:
			close(s.proxy.ready)
			return nil
		}
	}
}

// event passes an event on, or asks the shadow for a decision.
func (s *stream) event(ctx context.Context, kind string, object map[string]any) error {
	switch kind {
	case "ADDED", "MODIFIED", "DELETED":
		return s.podEvent(ctx, kind, parsePod(object))
	case "BOOKMARK":
		metadata := child(object, "metadata")
		version := text(metadata, "resourceVersion")
		ends := text(child(metadata, "annotations"), initialEventsEnd) == "true"
		setVersion(metadata)
		if err := s.write(kind, object); err != nil || !ends {
			return err
		}
		s.synced, s.since = true, version
		return s.begin(ctx)
	}
	return s.write(kind, object)
}

func (s *stream) podEvent(ctx context.Context, kind string, one *pod) error {
	switch shown, err := s.decided(ctx, kind, one); {
	case err != nil:
		return err
	case !shown:
		return nil
	}
	s.proxy.names.prepare(one)
	s.passed = time.Now()
	return s.write(kind, one.fields)
}

// decided asks the shadow about a pod if the observed scheduler has just decided about it, and
// reports whether the shadow then sees the event.
func (s *stream) decided(ctx context.Context, kind string, one *pod) (bool, error) {
	j, observed := s.proxy.judge, one.scheduler == s.proxy.names.observed
	switch {
	case kind == "DELETED":
		j.forget(one)
		return one.node != "" || !observed, nil
	case !s.synced:
		return s.proxy.shows(one), nil
	case one.node == "" && observed:
		j.wait(one.uid)
		if !one.refused || j.refused(one.uid) {
			return false, nil
		}
		return false, j.decide(ctx, s, one, "")
	case one.node == "":
		return true, nil
	case observed && j.waits(one.uid):
		if err := j.decide(ctx, s, one, one.node); err != nil {
			return false, err // the next watch gets the event again
		}
	}
	j.bound(one)
	return true, nil
}

// show implements [stage].
func (s *stream) show(one *pod, uid string, round int) error {
	return s.write("ADDED", one.copied(uid, shadowVersion(one.after, 1+2*round), s.proxy.names.profile()))
}

// hide implements [stage].
func (s *stream) hide(one *pod, uid string, round int) error {
	return s.write("DELETED", one.copied(uid, shadowVersion(one.after, 2+2*round), s.proxy.names.profile()))
}

// settle implements [stage]. Up to 1.34 kube-scheduler handles pods with a node in one goroutine
// and pods that wait in another (pkg/scheduler/eventhandlers.go adds two handlers), and may decide
// about a pod before it has processed the pod in an earlier event.
func (s *stream) settle(ctx context.Context) (bool, error) {
	left := settleTime - time.Since(s.passed)
	if left <= 0 {
		return false, nil
	}
	return true, clock.Sleep(ctx, left)
}

func (s *stream) write(kind string, object map[string]any) error {
	line, err := encodeEvent(kind, object)
	if err != nil {
		return err
	}
	if _, err := s.to.Write(line); err != nil {
		return err
	}
	s.flush()
	return nil
}

// flusher returns a function that flushes the buffered data to a client.
func flusher(w http.ResponseWriter) func() {
	c := http.NewResponseController(w)
	return func() { _ = c.Flush() } // the next write fails if the client is gone
}
