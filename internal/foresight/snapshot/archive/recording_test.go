package archive_test

import (
	"bytes"
	"encoding/json"
	"errors"
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
		"null":                 {[]string{`{"at":1,"object":null}`}, "line 1: expected an object, got null"},
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

// At one time several objects can change. The objects of the snapshot need not be read.
func TestChangesCanBeReadWithoutTheObjects(t *testing.T) {
	first := string(snapshot.EncodeEvent(time.Second, false, []byte(nodeA)))
	second := string(snapshot.EncodeEvent(time.Second, false, []byte(nodeB)))
	h, o := recording(first, second)
	stop := errors.New("no space")
	for events, want := range map[int]error{1: stop, 2: stop, 3: nil} {
		r, err := archive.NewRecordingReader(bytes.NewReader(write(t, h, o)), archive.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		err = r.Events(func(e archive.Event) error {
			if seen++; seen == events {
				return stop
			}
			if e.At != time.Second || e.Gone || e.Kind.Name != "Node" || e.Version != "v1" {
				t.Errorf("got %+v", e)
			}
			return nil
		})
		if !errors.Is(err, want) || problem.IsInvalid(err) || seen != min(events, 2) {
			t.Errorf("%d changes: %v", seen, err)
		}
	}
}

// Fields that schedulers do not read are dropped, and a recording without its changes is refused.
func TestChangesAreThoseOfTheHeader(t *testing.T) {
	h, o := recording(string(snapshot.EncodeEvent(time.Second, false,
		[]byte(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"},"spec":{"providerID":"x"}}`))))
	got, err := readRecording(write(t, h, o), archive.Limits{})
	want := []string{`1s false Node {"apiVersion":"v1","kind":"Node","metadata":{"name":"a"},"spec":{}}`}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
	h.Resources = nil
	head, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		entries []entry
		want    string
	}{
		"none":             {nil, "events.jsonl is missing"},
		"another file":     {[]entry{{name: "events.json"}}, `expected the file events.jsonl, got "events.json"`},
		"too few":          {[]entry{{name: "events.jsonl"}}, "events.jsonl has 0 events, the header 1"},
		"a file too many":  {[]entry{{name: "events.jsonl"}, {name: "x"}}, "events.jsonl has 0 events"},
		"a too large one":  {[]entry{{name: "events.jsonl", text: strings.Repeat("x", 100)}}, "line 1: bufio.Scanner: token too"},
		"without an order": {[]entry{{name: "events.jsonl", text: "{}\n"}}, "line 1: an event without an object"},
	} {
		file := makeArchive(t, append([]entry{{name: "header.json", text: string(head)}}, tc.entries...)...)
		_, err := readRecording(file, archive.Limits{ObjectBytes: 99})
		if err == nil || !strings.Contains(err.Error(), tc.want) || !problem.IsInvalid(err) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
	h.Recording.Events = 0
	if head, err = json.Marshal(h); err != nil {
		t.Fatal(err)
	}
	file := makeArchive(t, entry{name: "header.json", text: string(head)}, entry{name: "events.jsonl"}, entry{name: "x"})
	_, err = readRecording(file, archive.Limits{})
	if err == nil || !strings.Contains(err.Error(), `unexpected file "x"`) {
		t.Errorf("a file after the changes: %v", err)
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
