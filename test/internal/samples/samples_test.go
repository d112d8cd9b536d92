package samples_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/samples"
)

func TestMedianIsTheGreaterOfTwoMiddleSamples(t *testing.T) {
	for want, set := range map[float64]samples.Set{0: nil, 2: {3, 1, 2}, 3: {4, 1, 3, 2}} {
		if got := set.Median(); got != want {
			t.Errorf("%v: expected %v, got %v", set, want, got)
		}
	}
	if got := (samples.Set{1, 2, 6}).Mean(); got != 3 {
		t.Errorf("expected a mean of 3, got %v", got)
	}
}

func TestEachSideIsTheFirstOneInTurn(t *testing.T) {
	sides := []string{"a", "b", "c"}
	var got []string
	for round := range 4 {
		got = append(got, samples.Turn(sides, round)...)
	}
	if want := []string{"a", "b", "c", "b", "c", "a", "c", "a", "b", "a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("expected %v, got %v", want, got)
	}
}

func TestTableHasMedianAndMaximumOfEachRowAndSide(t *testing.T) {
	var table samples.Table
	for _, s := range []float64{3, 1, 2} {
		table.Add("node stopped", "default-scheduler", s)
	}
	table.Add("node stopped", "mine", 1.5)
	table.Add("node stopped", "mine", 180)
	table.Add("network cut", "default-scheduler", 1)
	want := `
| seconds, p50 / max | default-scheduler | mine |
|---|---|---|
| node stopped | 2.0 / 3.0 | 180.0 / 180.0 |
| network cut | 1.0 / 1.0 | - |
`
	if got := table.Markdown("seconds", func(s float64) string { return fmt.Sprintf("%.1f", s) }); got != want {
		t.Errorf("expected %s, got %s", want, got)
	}
}

func TestTableHasMeanAndRangeOfEachRowAndSide(t *testing.T) {
	var table samples.Table
	for _, s := range []float64{3, 1, 5} {
		table.Add("best fit", "default", s)
	}
	table.Add("by chance", "gpushare40", 1)
	want := `
| GPUs | default | gpushare40 |
|---|---|---|
| best fit | 3.0 (1.0–5.0) | - |
| by chance | - | 1.0 (1.0–1.0) |
`
	if got := table.MarkdownMean("GPUs", func(s float64) string { return fmt.Sprintf("%.1f", s) }); got != want {
		t.Errorf("expected %s, got %s", want, got)
	}
}

type failures []string

func (*failures) Helper() {}

func (f *failures) Errorf(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

func TestClaimThatDoesNotHoldFails(t *testing.T) {
	claim := samples.Claim("README.md", "7 times")
	for _, c := range []struct {
		got         float64
		least, most bool
	}{{5, true, true}, {4.999, false, true}, {5.001, true, false}, {math.NaN(), false, false}} {
		var low, high failures
		claim.AtLeast(&low, "the ratio", c.got, 5)
		claim.AtMost(&high, "the ratio", c.got, 5)
		if (len(low) == 0) != c.least || (len(high) == 0) != c.most {
			t.Errorf("%v: got %q, %q", c.got, low, high)
		}
	}
	var got failures
	claim.AtLeast(&got, "deployed/default", 1, 5)
	if want := `README.md claims "7 times": expected deployed/default of at least 5, got 1`; !slices.Equal(got, []string{want}) {
		t.Errorf("got %q, want %q", got, want)
	}
}
