package replay

import (
	"fmt"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

// Figure is a figure for the replay and for the recording, as text.
type Figure struct{ Name, Replayed, Recorded string }

// Figures returns the figures to compare.
func (r *Result) Figures() []Figure {
	a, b := &r.Replayed, &r.Recorded
	count := func(name string, a, b int) Figure { return Figure{name, fmt.Sprint(a), fmt.Sprint(b)} }
	wait := func(name string, a, b float64) Figure { return Figure{name, Elapsed(a), Elapsed(b)} }
	all := []Figure{
		count("Pods arrived", a.Arrived, b.Arrived), count("Pods placed", a.Placed, b.Placed),
		count("Pods ended", a.Ended, b.Ended), count("Pods evicted", a.Evicted, b.Evicted),
		count("Most pods waiting at a time", a.MostWaiting, b.MostWaiting),
		wait("Mean wait", a.Waiting.Mean, b.Waiting.Mean), wait("Wait, p50", a.Waiting.P50, b.Waiting.P50),
		wait("Wait, p90", a.Waiting.P90, b.Waiting.P90), wait("Wait, p99", a.Waiting.P99, b.Waiting.P99),
		wait("Longest wait", a.Waiting.Max, b.Waiting.Max),
	}
	percent := func(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) }
	for _, resource := range a.Mean.Resources() {
		all = append(all, Figure{"Mean utilization of " + resource, percent(a.Mean.Utilization[resource]),
			percent(b.Mean.Utilization[resource])})
	}
	if a.Mean.Cost > 0 {
		all = append(all,
			Figure{"Mean cost of nodes", report.FormatPrice(a.Mean.Cost), report.FormatPrice(b.Mean.Cost)},
			Figure{"Mean cost of empty nodes", report.FormatPrice(a.Mean.EmptyCost), report.FormatPrice(b.Mean.EmptyCost)})
	}
	return all
}

// Elapsed formats a number of seconds.
func Elapsed(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(100 * time.Millisecond).String()
}
