package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// RecordingFormat identifies a recording: a snapshot, and the changes to its objects afterwards.
const RecordingFormat = "pmk-sched.io/recording"

// Recording describes the changes in a recording.
type Recording struct {
	// Seconds is the recording's length.
	Seconds float64 `json:"seconds"`
	Events  int     `json:"events"`
	// Bytes is the events' size before compression.
	Bytes int64 `json:"bytes"`
	// Listed is the number of times that a kind's objects were listed again, because the API server
	// did not have the changes since the last event any more.
	Listed int `json:"listed,omitempty"`
}

// Event is an object change after a recording's snapshot.
type Event struct {
	// Milliseconds is the time since the snapshot.
	Milliseconds int64 `json:"at"`
	// Gone is set if the object was removed. Object is then its last known state, or its name alone.
	Gone   bool            `json:"gone,omitempty"`
	Object json.RawMessage `json:"object"`
}

// mostMilliseconds is the longest time that a [time.Duration] can have.
const mostMilliseconds = math.MaxInt64 / int64(time.Millisecond)

// At returns the time since the snapshot.
func (e *Event) At() time.Duration { return time.Duration(e.Milliseconds) * time.Millisecond }

// EncodeEvent encodes an event as JSON in one line. object is JSON that [Encode] returned.
func EncodeEvent(at time.Duration, gone bool, object []byte) []byte {
	line := fmt.Appendf(nil, `{"at":%d,`, at.Milliseconds())
	if gone {
		line = append(line, `"gone":true,`...)
	}
	line = append(line, `"object":`...)
	return append(append(line, object...), '}')
}

// DecodeEvent decodes an event. It shares no memory with text.
func DecodeEvent(text []byte) (Event, error) {
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	var e Event
	err := in.Decode(&e)
	switch {
	case err != nil:
		return e, err
	case len(e.Object) == 0:
		return e, errors.New("an event without an object")
	case e.Milliseconds < 0 || e.Milliseconds > mostMilliseconds:
		return e, fmt.Errorf("an event at %d ms", e.Milliseconds)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return e, errors.New("more than one event")
	}
	return e, nil
}

// FindOf returns an object's kind, and its version. The kind is nil if it is not in kinds.
func FindOf(kinds []*Kind, o map[string]any) (kind *Kind, version string) {
	apiVersion, _ := o["apiVersion"].(string)
	name, _ := o["kind"].(string)
	return Find(kinds, apiVersion, name)
}
