package adapter

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics/legacyregistry"
)

// registerer registers with the registry that the scheduler serves at /metrics. It uses
// RawMustRegister, which panics on an error, because every release has it.
type registerer struct{}

// Register registers c, or returns the registry's error.
func (registerer) Register(c prometheus.Collector) (err error) {
	defer func() {
		if r := recover(); r != nil {
			refused, ok := r.(error)
			if !ok {
				panic(r)
			}
			err = refused
		}
	}()
	legacyregistry.RawMustRegister(c)
	return nil
}

// MustRegister registers the collectors or panics.
func (registerer) MustRegister(collectors ...prometheus.Collector) {
	legacyregistry.RawMustRegister(collectors...)
}

// Unregister returns false: the scheduler's registry cannot unregister a collector.
func (registerer) Unregister(prometheus.Collector) bool { return false }
