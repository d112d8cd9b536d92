package loadaware

import "fmt"

// Ready returns an error if a metric has no fresh data of any node. It is used by an extender's /readyz, not by
// schedulers.
func (l *LoadAware) Ready() error {
	for _, src := range l.sources {
		if !src.covers() {
			return fmt.Errorf("no fresh data of any node for metric %s: does Prometheus answer its query?", src.metric.Name)
		}
	}
	return nil
}
