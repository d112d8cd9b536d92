package v1alpha1_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/golden"
)

// refusals has the whole error of each case of a test, with its advice.
type refusals map[string]error

// equal compares the errors with a golden file.
func (r refusals) equal(t *testing.T, file string) {
	t.Helper()
	var b strings.Builder
	for _, text := range slices.Sorted(maps.Keys(r)) {
		fmt.Fprintf(&b, "%q\n    %v\n", text, r[text])
		var hinted interface{ Hint() string }
		if errors.As(r[text], &hinted) && hinted.Hint() != "" {
			fmt.Fprintf(&b, "    hint: %s\n", hinted.Hint())
		}
	}
	golden.Equal(t, "testdata/"+file, b.String())
}
