package archive

import (
	"bufio"
	"io"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// NewRecordingReader reads a recording's header. If the file is not a recording, the error is about
// the input (package problem).
func NewRecordingReader(r io.Reader, limits Limits) (*Reader, error) {
	return newReader(r, limits, snapshot.RecordingFormat)
}

// Event is a change to an object.
type Event struct {
	// At is the time since the snapshot. Gone is set if the object was removed.
	At      time.Duration
	Gone    bool
	Kind    *snapshot.Kind
	Version string
	Object  map[string]any
}

// Events calls do with each change, in time order. It can be called once, after [Reader.Each] or
// instead of it: the objects are then skipped.
func (r *Reader) Events(do func(Event) error) error {
	for _, res := range r.header.Resources[r.passed:] {
		if err := r.next(entryName(res)); err != nil {
			return err
		}
	}
	if err := r.next(eventsName); err != nil {
		return err
	}
	lines := bufio.NewScanner(r.tar)
	lines.Buffer(make([]byte, 0, min(64<<10, r.limits.ObjectBytes)), r.limits.ObjectBytes)
	count, before := 0, time.Duration(0)
	for lines.Scan() {
		if count++; count > r.limits.Events {
			return invalid("%s has more than %d events", eventsName, r.limits.Events)
		}
		e, err := r.decodeEvent(lines.Bytes())
		if err != nil {
			return invalid("%s: line %d: %w", eventsName, count, err)
		}
		if e.At < before {
			return invalid("%s: line %d: %s comes after %s", eventsName, count, e.At, before)
		}
		before = e.At
		if err := do(e); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return invalid("%s: line %d: %w", eventsName, count+1, err)
	}
	if count != r.header.Recording.Events {
		return invalid("%s has %d events, the header %d", eventsName, count, r.header.Recording.Events)
	}
	return r.end()
}

// decodeEvent returns the event in a line, whose object has no fields that schedulers do not read.
func (r *Reader) decodeEvent(line []byte) (Event, error) {
	stored, err := snapshot.DecodeEvent(line)
	if err != nil {
		return Event{}, err
	}
	object, err := snapshot.Decode(stored.Object)
	if err != nil {
		return Event{}, err
	}
	e := Event{At: stored.At(), Gone: stored.Gone}
	e.Kind, e.Version = snapshot.FindOf(r.kinds, object)
	if e.Kind == nil {
		return e, errUnknownKind(object)
	}
	e.Object = e.Kind.Strip(object)
	_, err = e.Kind.Key(e.Object)
	return e, err
}
