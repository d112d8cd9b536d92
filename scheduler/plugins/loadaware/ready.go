package loadaware

import "fmt"

// Ready returns nil when there is fresh load of at least one node for every metric, and otherwise says which metric has none. A
// scheduler does not ask; an extender's /readyz does.
func (l *LoadAware) Ready() error {
	for _, src := range l.sources {
		if !src.covers() {
			return fmt.Errorf("there is no fresh load of any node for metric %s: does Prometheus answer its query?", src.metric.Name)
		}
	}
	return nil
}
