package snapshot_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

func TestEventsAreReadAsTheyAreWritten(t *testing.T) {
	object := `{"kind":"Pod"}`
	for line, want := range map[string]snapshot.Event{
		`{"at":0,"object":{"kind":"Pod"}}`:                {Object: json.RawMessage(object)},
		`{"at":1500,"gone":true,"object":{"kind":"Pod"}}`: {Milliseconds: 1500, Gone: true, Object: json.RawMessage(object)},
		`{"at":9223372036854,"object":{"kind":"Pod"}}`:    {Milliseconds: 9223372036854, Object: json.RawMessage(object)},
	} {
		got, err := snapshot.DecodeEvent([]byte(line))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v, %s", line, err, diff)
		}
		if again := string(snapshot.EncodeEvent(got.At(), got.Gone, got.Object)); again != line {
			t.Errorf("%s became %s", line, again)
		}
	}
	if got := string(snapshot.EncodeEvent(1999999*time.Nanosecond, false, []byte("{}"))); got != `{"at":1,"object":{}}` {
		t.Errorf("got %s", got)
	}
}

func TestEventsOfOtherFormsAreRefused(t *testing.T) {
	for line, want := range map[string]string{
		`{"at":1}`:                                 "an event without an object",
		`{"at":-1,"object":{}}`:                    "an event at -1 ms",
		`{"at":9223372036855,"object":{}}`:         "an event at 9223372036855 ms",
		`{"at":1,"object":{},"of":1}`:              `json: unknown field "of"`,
		`{"at":1,"object":{}} x`:                   "more than one event",
		`{"at":1,"object":{}}{"at":1,"object":{}}`: "more than one event",
	} {
		if got, err := snapshot.DecodeEvent([]byte(line)); err == nil || err.Error() != want {
			t.Errorf("%s: got %+v, %v", line, got, err)
		}
	}
}
