package archive_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/archive"
)

// recording returns the sample as a recording with events.
func recording(events ...string) (*snapshot.Header, objects) {
	h, o := sample()
	h.Format = snapshot.RecordingFormat
	h.Recording = &snapshot.Recording{Seconds: 60, Events: len(events), Bytes: int64(len(strings.Join(events, "")))}
	o[archive.Events] = events
	return h, o
}

func readRecording(file []byte, limits archive.Limits) ([]string, error) {
	r, err := archive.NewRecordingReader(bytes.NewReader(file), limits)
	if err != nil {
		return nil, err
	}
	if err := r.Each(func(*snapshot.Kind, string, map[string]any) error { return nil }); err != nil {
		return nil, err
	}
	var all []string
	err = r.Events(func(e archive.Event) error {
		text, err := snapshot.Encode(e.Object)
		all = append(all, fmt.Sprintf("%s %t %s %s", e.At, e.Gone, e.Kind.Name, text))
		return err
	})
	return all, err
}

func TestARecordingHasItsChangesInOrder(t *testing.T) {
	h, o := recording(string(snapshot.EncodeEvent(1500*time.Millisecond, false, []byte(nodeA))),
		string(snapshot.EncodeEvent(2*time.Second, true, []byte(pod))))
	got, err := readRecording(write(t, h, o), archive.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1.5s false Node " + nodeA, "2s true Pod " + pod}, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestRecordingsAndSnapshotsAreToldApart(t *testing.T) {
	h, o := recording()
	_, _, err := read(write(t, h, o), archive.Limits{})
	if err == nil || !strings.Contains(err.Error(), "is a recording") || !problem.IsInvalid(err) {
		t.Errorf("a recording as a snapshot: %v", err)
	}
	h, o = sample()
	_, err = readRecording(write(t, h, o), archive.Limits{})
	if err == nil || !strings.Contains(err.Error(), "expected the format") {
		t.Errorf("a snapshot as a recording: %v", err)
	}
}

func TestWrongChangesAreRefused(t *testing.T) {
	cases := map[string]struct {
		events []string
		want   string
	}{
		"not JSON":             {[]string{"{"}, "line 1"},
		"no object":            {[]string{`{"at":1}`}, "without an object"},
		"another field":        {[]string{`{"at":1,"object":{},"x":1}`}, "unknown field"},
		"before the beginning": {[]string{`{"at":-1,"object":{}}`}, "-1 ms"},
		"a kind that the header does not have": {
			[]string{`{"at":1,"object":{"apiVersion":"v1","kind":"Service"}}`}, "no kind v1 Service"},
		"without a name": {[]string{`{"at":1,"object":{"apiVersion":"v1","kind":"Node"}}`}, "no metadata.name"},
		"not in order": {[]string{`{"at":2,"object":` + nodeA + `}`, `{"at":1,"object":` + nodeA + `}`},
			"line 2: 1ms comes after"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h, o := recording(tc.events...)
			_, err := readRecording(write(t, h, o), archive.Limits{})
			if err == nil || !strings.Contains(err.Error(), tc.want) || !problem.IsInvalid(err) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestChangesAreBounded(t *testing.T) {
	event := string(snapshot.EncodeEvent(time.Second, false, []byte(nodeA)))
	h, o := recording(event, event, event)
	for most, ok := range map[int]bool{2: false, 3: true} {
		got, err := readRecording(write(t, h, o), archive.Limits{Events: most})
		if ok != (err == nil) || !ok && (len(got) != most || !problem.IsInvalid(err)) {
			t.Errorf("at most %d: got %q, %v", most, got, err)
		}
	}
}
