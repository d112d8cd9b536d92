package profiles_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

// transcript has the whole result of each case of a test, by the name of the case. The cases of a
// table name the part that they are about; the transcript has positions, hints and notes too.
type transcript map[string]string

// add adds what is reported about a case, and the text that it results in.
func (tr transcript) add(name string, err error, notes []profiles.Note, text []byte) {
	var b strings.Builder
	var wrong *profiles.Error
	switch {
	case errors.As(err, &wrong):
		for _, p := range wrong.Problems {
			fmt.Fprintf(&b, "error %d:%d %s\n", p.Line, p.Column, p.Message)
			if p.Try != "" {
				fmt.Fprintf(&b, "    %s\n", p.Try)
			}
		}
	case err != nil:
		fmt.Fprintf(&b, "error %v\n", err)
	}
	for _, n := range notes {
		kind := "note"
		switch {
		case n.Loss:
			kind = "loss"
		case n.Warning:
			kind = "warning"
		}
		fmt.Fprintf(&b, "%s %d:%d %s\n", kind, n.Line, n.Column, n.Message)
	}
	b.Write(text)
	tr[name] = b.String()
}

// addConverted adds the result of a conversion, which may be nil.
func (tr transcript) addConverted(name string, err error, out *profiles.Converted) {
	if out == nil {
		out = &profiles.Converted{}
	}
	tr.add(name, err, out.Notes, out.YAML)
}

// equal compares the transcript with a golden file.
func (tr transcript) equal(t *testing.T, file string) {
	t.Helper()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(tr)) {
		fmt.Fprintf(&b, "-- %s --\n%s\n", name, strings.TrimSpace(tr[name]))
	}
	golden.Equal(t, "testdata/transcripts/"+file, b.String())
}
