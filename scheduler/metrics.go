package scheduler

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Register registers a collector, and returns it; or, if the plugin registered it already for another
// profile, the one that is there, so that both profiles count together. r may be nil, which
// leaves the collector unregistered.
func Register(r prometheus.Registerer, c prometheus.Collector) (prometheus.Collector, error) {
	if r == nil {
		return c, nil
	}
	err := r.Register(c)
	var registered prometheus.AlreadyRegisteredError
	if errors.As(err, &registered) {
		return registered.ExistingCollector, nil
	}
	return c, err
}
