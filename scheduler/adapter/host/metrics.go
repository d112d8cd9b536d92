package host

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Metrics registers with the registry that the scheduler serves at /metrics.
// All releases have RawMustRegister, which reports by panicking; few have anything milder.
type Metrics struct{}

// Register registers c, or returns the registry's error.
func (Metrics) Register(c prometheus.Collector) (err error) {
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

// MustRegister registers each of the collectors or panics.
func (Metrics) MustRegister(collectors ...prometheus.Collector) {
	legacyregistry.RawMustRegister(collectors...)
}

// Unregister does nothing and says so: the scheduler's registry cannot.
func (Metrics) Unregister(prometheus.Collector) bool { return false }
