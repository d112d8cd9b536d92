package shadow

import (
	"sync"

	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/foresight/readonly"
)

// proxy is between the shadow and the API server.
type proxy struct {
	*readonly.Proxy
	log   *zap.Logger
	judge *judge
	names names
	// ready is closed when the shadow has decided for the first time.
	ready chan struct{}

	mu      sync.Mutex // of backlog
	backlog []*pod
}

// newProxy returns a proxy for the API server in a configuration.
func newProxy(cfg *rest.Config, log *zap.Logger) (p *proxy, err error) {
	p = &proxy{log: log, judge: newJudge(log), ready: make(chan struct{})}
	p.Proxy, err = readonly.New(cfg, log, p)
	return p, err
}
