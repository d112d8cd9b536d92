// Package scheduler is the portable plugin API: a scheduler plugin written against it is compiled
// into the kube-scheduler of any release from 1.20 on, unchanged.
//
// # Plugins
//
// kube-scheduler takes one pod at a time from its queue and calls plugins at a sequence of
// extension points: which nodes can run the pod (PreFilter, Filter), which of these is best
// (PreScore, Score), and the steps to bind it (Reserve, Permit, PreBind, Bind, PostBind). A plugin
// is a type with the method Name and methods for the extension points that it implements. These
// are, in order:
//
//	PreEnqueue   may the pod enter the queue?                        PreEnqueuePlugin (from 1.26)
//	QueueSort    which of two pods is scheduled first?               QueueSortPlugin
//	PreFilter    prepare filtering; optionally restrict the nodes    PreFilterPlugin
//	Filter       can this node run the pod?                          FilterPlugin
//	PostFilter   no node can run the pod: make room                  PostFilterPlugin
//	PreScore     prepare scoring                                     PreScorePlugin
//	Score        how good is this node, 0 to MaxNodeScore?           ScorePlugin
//	Reserve      reserve resources on the chosen node, or undo it    ReservePlugin
//	Permit       bind now, wait, or reject                           PermitPlugin
//	PreBind      work to do before the pod is bound                  PreBindPlugin
//	Bind         bind the pod                                        BindPlugin
//	PostBind     the pod is bound                                    PostBindPlugin
//
// In addition, EventsPlugin names the cluster events after which the scheduler retries a pod that
// the plugin rejected, and SignPlugin declares the part of a pod that the results depend on, so
// that the scheduler can reuse them for identical pods (from 1.35).
//
// # A complete plugin
//
// A plugin package has a constant Name, the plugin's name in the scheduler configuration, and a
// function New that returns a pointer to the plugin's own type (not an interface: the build derives
// the plugin's extension points from that type's methods).
//
//	package quiet
//
//	import (
//		"context"
//
//		corev1 "k8s.io/api/core/v1"
//
//		"github.com/pmk-sched/pmk-sched/scheduler"
//	)
//
//	// Name is the plugin's name in the configuration.
//	const Name = "Quiet"
//
//	// Arguments are the plugin's arguments in the configuration.
//	type Arguments struct {
//		MaxPods int `json:"maxPods"`
//	}
//
//	// Quiet rejects nodes with many pods and prefers nodes with few.
//	type Quiet struct {
//		max  int
//		full *scheduler.Status
//	}
//
//	// New is called once per profile that enables the plugin, when the scheduler starts.
//	func New(_ context.Context, args scheduler.Arguments, _ scheduler.Handle) (*Quiet, error) {
//		a := Arguments{MaxPods: 50}
//		if err := args.Decode(&a); err != nil {
//			return nil, err
//		}
//		return &Quiet{max: a.MaxPods, full: scheduler.Unschedulable("too many pods")}, nil
//	}
//
//	// Name returns the constant.
//	func (q *Quiet) Name() string { return Name }
//
//	// Filter rejects nodes that are full.
//	func (q *Quiet) Filter(_ context.Context, _ scheduler.State, _ *corev1.Pod, node scheduler.NodeInfo) *scheduler.Status {
//		if node.PodCount() >= q.max {
//			return q.full
//		}
//		return nil
//	}
//
//	// Score prefers nodes with few pods.
//	func (q *Quiet) Score(_ context.Context, _ scheduler.State, _ *corev1.Pod, node scheduler.NodeInfo) (int64, *scheduler.Status) {
//		return scheduler.MaxNodeScore * int64(q.max-node.PodCount()) / int64(q.max), nil
//	}
//
// A third function is optional: it returns the API server permissions that the plugin needs in
// addition to every scheduler's permissions. For the bundled plugins, pmk-sched creates a
// ClusterRole from it. pmk-sched does not run other plugins' code: list their rules in
// pmk-sched.yaml, under spec.rbac.rules.
//
//	func Rules(args scheduler.Arguments) ([]rbacv1.PolicyRule, error)
//
// # Concurrency and failures
//
// Methods are called from many goroutines: Filter and Score run for several nodes in parallel, and
// the extension points from PreBind on (and Unreserve) run in parallel with the next pod's
// scheduling cycle. Protect the plugin's fields with a lock; store values for one pod's cycle in
// State. Pods, nodes and NodeInfo are shared and must not be modified. Filter and Score run for
// every pod and node, so they must not wait for the network: fetch data in the background.
//
// A panic at an extension point is an error for that call's pod: the adapter recovers, logs the
// stack and counts it in pmk_sched_plugin_panics_total, and the scheduler continues. Unlock with
// defer: a lock that the panic leaves locked stops the next call. A panic in New, in an informer's
// handler or in a plugin's goroutine ends the scheduler.
//
// # Staying portable
//
// Each release is compiled with the Go version that it names, from Go 1.15 for 1.20 to Go 1.26 for
// 1.37. A plugin for all releases must not use generics, any, and newer standard library features.
// The API contains only features that all releases support. The adapter implements features that
// old releases lack: PreFilter's node set before 1.24, and Skip from PreFilter and PreScore before
// 1.27. It cannot do so for PreEnqueue, so a plugin that implements it is refused for releases
// before 1.26.
//
// The package plugintest runs a plugin in an ordinary Go test.
package scheduler
