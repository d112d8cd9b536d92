package kubeapi

import (
	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/ownership"
)

// Request limits of pmk-sched's clients. The default of client-go, 5 per second, is meant for controllers.
const (
	DefaultQPS   = 50
	DefaultBurst = 100
)

// ClientConfig returns a copy of cfg with the request limits and user agent of pmk-sched, unless cfg sets them, and with a
// handler that logs the API server's warnings. A nil log is silent.
func ClientConfig(cfg *rest.Config, log *zap.Logger) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	if cfg.QPS == 0 {
		cfg.QPS, cfg.Burst = DefaultQPS, DefaultBurst
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = ownership.Manager
	}
	cfg.WarningHandlerWithContext = WarningLogger(log)
	return cfg
}
