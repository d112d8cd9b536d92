package inspect

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/pmk-sched/pmk-sched/versions"
)

// Options of Detect. With the zero value it inspects only the cluster.
type Options struct {
	// NodeRoot is the root directory of this node: "/", or where a container has
	// it mounted. Empty: not on a node.
	NodeRoot string
	// Name and SchedulerNamespace are those of the scheduler to deploy: its own
	// port counts as free. SchedulerNamespace defaults to kube-system.
	Name               string
	SchedulerNamespace string
	// MaxControlPlaneNodes bounds the control-plane nodes to inspect; 0 means 50.
	MaxControlPlaneNodes int
	// SourceGo returns the Go version of a release, such as "1.18.3". If it is
	// nil or fails, the version of the minor is used, with a warning if it failed.
	SourceGo func(context.Context, versions.Release) (string, error)
	// Usage returns what a configuration uses of what known problems of a release
	// depend on. If it is nil, those of deployed schedulers are not looked up.
	Usage func(configuration []byte, release versions.Release) (versions.Usage, error)
	// Now is the clock for certificates; nil means time.Now.
	Now func() time.Time
	// Log may be nil.
	Log *zap.Logger
}

const (
	kubeSystem                  = "kube-system"
	defaultMaxControlPlaneNodes = 50
)

func (o Options) withDefaults() Options {
	if o.SchedulerNamespace == "" {
		o.SchedulerNamespace = kubeSystem
	}
	if o.MaxControlPlaneNodes <= 0 {
		o.MaxControlPlaneNodes = defaultMaxControlPlaneNodes
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	return o
}
