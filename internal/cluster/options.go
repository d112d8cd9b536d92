package cluster

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/pmk-sched/pmk-sched/versions"
)

// Options says what to look at. The zero value looks at the cluster only.
type Options struct {
	// NodeRoot is the root folder of the node that the caller runs on: "/", or
	// where a container has it mounted. Empty: not on a node.
	NodeRoot string
	// Name and SchedulerNamespace name the scheduler that the caller is about
	// to deploy: a port that it already uses is not taken. Namespace defaults
	// to kube-system.
	Name               string
	SchedulerNamespace string
	// MaxControlPlaneNodes bounds how many control-plane nodes are looked at;
	// 0 means 50.
	MaxControlPlaneNodes int
	// SourceGo returns the version of Go that a release names, such as
	// "1.18.3". When it is nil or fails, the version known for the minor is
	// given, with a warning if it failed.
	SourceGo func(context.Context, versions.Release) (string, error)
	// Now is the clock that certificates are judged by; nil means time.Now.
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
