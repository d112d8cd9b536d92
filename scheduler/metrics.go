package scheduler

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Register registers a collector and returns it. If the collector is already registered, for another
// profile, Register returns the existing one, so that the profiles share it. If r is nil, the
// collector is not registered.
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
