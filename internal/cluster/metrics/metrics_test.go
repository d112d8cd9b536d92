package metrics

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const text = `# HELP attempts_total [STABLE] Number of attempts
# TYPE attempts_total counter
attempts_total{profile="s",result="error"} 1
attempts_total{profile="s",result="scheduled"} 90 1700000000000
attempts_total{profile="a \"b\", c",result="scheduled"} 1.2e+01
attempts_total{profile="s"} 3
untyped 7
# TYPE pending gauge
pending{queue="active"} 2
pending{queue="gated"} 3
# TYPE seconds histogram
seconds_bucket{plugin="a",point="Filter",le="1"} 2
seconds_bucket{plugin="a",point="Filter",le="+Inf"} 4
seconds_sum{plugin="a",point="Filter"} 8
seconds_count{plugin="a",point="Filter"} 4
seconds_bucket{plugin="b",point="Filter",le="1"} 1
seconds_bucket{plugin="b",point="Filter",le="+Inf"} 1
seconds_sum{plugin="b",point="Filter"} 0.5
seconds_count{plugin="b",point="Filter"} 1
`

func TestSums(t *testing.T) {
	m := Parse(text)
	want := map[string]float64{"error": 1, "scheduled": 102, "": 3}
	if diff := cmp.Diff(want, m.SumBy("attempts_total", "result")); diff != "" {
		t.Errorf("sums by result (-want +got):\n%s", diff)
	}
	for name, want := range map[string]float64{
		"attempts_total": 106, "untyped": 7, "pending": 5, "attempts": 0, "seconds": 0,
	} {
		if got := m.Sum(name); got != want {
			t.Errorf("sum of %s: got %v, want %v", name, got, want)
		}
	}
}

func TestHistogramsAreAddedByLabels(t *testing.T) {
	m := Parse(text)
	byPoint := m.Histograms("seconds", "point")
	want := map[string]*Histogram{"Filter": {Sum: 8.5, Count: 5, buckets: map[float64]float64{1: 3, math.Inf(1): 5}}}
	if diff := cmp.Diff(want, byPoint, cmp.AllowUnexported(Histogram{})); diff != "" {
		t.Errorf("histograms by point (-want +got):\n%s", diff)
	}
	byPoint["Filter"].Add(nil)
	if got := byPoint["Filter"].Mean(); got != 1.7 {
		t.Errorf("mean: got %v, want 1.7", got)
	}
	if all := m.Histograms("seconds", "plugin", "point"); len(all) != 2 || all["a/Filter"].Sum != 8 {
		t.Errorf("histograms by plugin and point: got %v", all)
	}
	fractions := Parse("# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 2.5\nh_sum 3\nh_count 2.5\n")
	want = map[string]*Histogram{"": {Sum: 3, Count: 2.5, buckets: map[float64]float64{1: 2, math.Inf(1): 2.5}}}
	if diff := cmp.Diff(want, fractions.Histograms("h"), cmp.AllowUnexported(Histogram{})); diff != "" {
		t.Errorf("a histogram of fractions (-want +got):\n%s", diff)
	}
	if all := m.Histograms("attempts_total"); len(all) > 0 {
		t.Errorf("histograms of a counter: got %v", all)
	}
}

func TestQuantiles(t *testing.T) {
	for name, tc := range map[string]struct {
		buckets map[float64]float64
		want    map[float64]float64
	}{
		"no observations":       {map[float64]float64{1: 0, math.Inf(1): 0}, map[float64]float64{0.5: 0}},
		"no buckets":            {nil, map[float64]float64{0.5: 0}},
		"all in the first":      {map[float64]float64{1: 4, 2: 4, math.Inf(1): 4}, map[float64]float64{0.5: 0.5}},
		"beyond the last bound": {map[float64]float64{1: 1, 2: 1, math.Inf(1): 100}, map[float64]float64{0.99: 2}},
		"on a bound":            {map[float64]float64{1: 5, 2: 10, math.Inf(1): 10}, map[float64]float64{0.5: 1, 1: 2}},
		"within buckets": {
			map[float64]float64{1: 0, 2: 5, 4: 9, math.Inf(1): 10}, map[float64]float64{0.25: 1.5, 0.5: 2, 0.7: 3, 0.99: 4},
		},
	} {
		h := &Histogram{buckets: tc.buckets}
		got := map[float64]float64{}
		for q := range tc.want {
			got[q] = h.Quantile(q)
		}
		if diff := cmp.Diff(tc.want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := (&Histogram{}).Mean(); got != 0 {
		t.Errorf("mean of nothing: got %v", got)
	}
}

// The metrics before the first malformed line are read.
func TestParseMalformedText(t *testing.T) {
	const head = "attempts_total 2\n"
	for _, rest := range []string{
		"", "not found\n", "a{b=} 1\n", `a{b="c} 1`, "attempts_total many\n", "a", "\x00\xff", "<html>",
		"# TYPE attempts_total histogram\n",
		"# TYPE h histogram\nh_bucket{le=\"x\"} 1\n", "# TYPE h histogram\nh_bucket 1\nh_count NaN\n", "attempts_total",
	} {
		if got := Parse(head + rest).Sum("attempts_total"); got != 2 {
			t.Errorf("metrics followed by %q: got %v, want 2", rest, got)
		}
		Parse(rest).Histograms("h", "le")
	}
}

func FuzzParseNeverPanics(f *testing.F) {
	f.Add(text)
	f.Add("#\n{}0")
	f.Add("# TYPE h histogram\nh_bucket{le=\"NaN\"} -1\nh_sum 1e999\n")
	f.Fuzz(func(_ *testing.T, text string) {
		m := Parse(text)
		for name := range m {
			m.SumBy(name, "a")
			for _, h := range m.Histograms(name, "a", "b") {
				h.Quantile(0.5)
			}
		}
	})
}
