package kubeapi

import (
	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// ClientConfig returns a copy of cfg without a rate limiter, with pmk-sched's user agent unless cfg
// sets one, and with a handler that logs the API server's warnings. A nil log is silent.
//
// A command sends few requests, and the API server limits them itself (API Priority and Fairness,
// on by default from 1.20 on). Near a deadline client-go's rate limiter does not return the
// context's error (golang.org/x/time/rate, Limiter.WaitN), so that a wait that ran out of time
// would be taken for a different failure.
func ClientConfig(cfg *rest.Config, log *zap.Logger) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.RateLimiter = -1, nil
	if cfg.UserAgent == "" {
		cfg.UserAgent = ownership.Manager
	}
	cfg.WarningHandlerWithContext = WarningLogger(log)
	return cfg
}
