package inspect

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/pmk-sched/pmk-sched/versions"
)

// Options for Detect. With the zero value it inspects only the cluster.
type Options struct {
	// NodeRoot is this node's root directory: "/", or where a container has it mounted. If it is
	// empty, no files on a node are read.
	NodeRoot string
	// Name and SchedulerNamespace identify the scheduler to deploy: its current port counts as free,
	// and other schedulers' ConfigMaps and Secrets are not read. SchedulerNamespace defaults to
	// kube-system.
	Name               string
	SchedulerNamespace string
	// MaxControlPlaneNodes bounds the control-plane nodes to inspect. The default is 50.
	MaxControlPlaneNodes int
	// SourceGo returns a release's Go version, such as "1.18.3". If it is nil or fails, the minor's
	// version is used, with a warning if it failed.
	SourceGo func(context.Context, versions.Release) (string, error)
	// Usage returns the configuration's features on which a release's known problems depend. If it is
	// nil, known problems in deployed schedulers are not looked up.
	Usage func(configuration []byte, release versions.Release) (versions.Usage, error)
	// Now is the clock for certificates. The default is time.Now.
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
