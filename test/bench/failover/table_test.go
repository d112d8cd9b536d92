//go:build linux

package failover

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// table has the measured times of each failure and scheduler, in the order in which they were added.
type table struct {
	titles, names []string
	times         map[[2]string][]time.Duration
}

func (t *table) add(title, name string, took time.Duration) {
	if t.times == nil {
		t.times = map[[2]string][]time.Duration{}
	}
	if !slices.Contains(t.titles, title) {
		t.titles = append(t.titles, title)
	}
	if !slices.Contains(t.names, name) {
		t.names = append(t.names, name)
	}
	t.times[[2]string{title, name}] = append(t.times[[2]string{title, name}], took)
}

// of returns the median, of an even number the greater one, and the maximum.
func (t *table) of(title, name string) (p50, longest time.Duration) {
	sorted := slices.Sorted(slices.Values(t.times[[2]string{title, name}]))
	if len(sorted) == 0 {
		return 0, 0
	}
	return sorted[len(sorted)/2], sorted[len(sorted)-1]
}

// markdown returns the table for the README, in seconds.
func (t *table) markdown() string {
	var b strings.Builder
	b.WriteString("\n| seconds until a new pod is bound, p50 / max |")
	for _, name := range t.names {
		fmt.Fprintf(&b, " %s |", name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(t.names)) + "\n")
	for _, title := range t.titles {
		fmt.Fprintf(&b, "| %s |", title)
		for _, name := range t.names {
			cell := "-"
			if p50, longest := t.of(title, name); longest > 0 {
				cell = seconds(p50) + " / " + seconds(longest)
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func seconds(d time.Duration) string {
	if d >= limit {
		return "never"
	}
	return fmt.Sprintf("%.1f", d.Seconds())
}

func TestTableHasMedianAndMaximumOfEachFailure(t *testing.T) {
	var measured table
	for _, s := range []int{3, 1, 2} {
		measured.add("node stopped", "default-scheduler", time.Duration(s)*time.Second)
	}
	measured.add("node stopped", "mine", 1500*time.Millisecond)
	measured.add("node stopped", "mine", limit)
	measured.add("network cut", "default-scheduler", time.Second)
	want := `
| seconds until a new pod is bound, p50 / max | default-scheduler | mine |
|---|---|---|
| node stopped | 2.0 / 3.0 | never / never |
| network cut | 1.0 / 1.0 | - |
`
	if got := measured.markdown(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
