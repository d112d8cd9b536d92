// Package scheduler is the portable plugin API: a scheduler plugin written against it is compiled
// into the kube-scheduler of any release from 1.20 on, unchanged.
//
// # What a plugin is
//
// kube-scheduler takes one pod at a time from its queue and leads it through a row of extension
// points: which nodes can run it (PreFilter, Filter), which of those is best (PreScore, Score), and
// then the way to that node (Reserve, Permit, PreBind, Bind, PostBind). A plugin is a type with a
// Name and the methods of the points it has something to say at. The points are, in order:
//
//	PreEnqueue   may the pod enter the queue?                        PreEnqueuePlugin (from 1.26)
//	QueueSort    which of two pods goes first?                       QueueSortPlugin
//	PreFilter    look at the pod once; perhaps name the nodes        PreFilterPlugin
//	Filter       can this node run the pod?                          FilterPlugin
//	PostFilter   no node can: make room                              PostFilterPlugin
//	PreScore     prepare for scoring                                 PreScorePlugin
//	Score        how good is this node, 0 to MaxNodeScore?           ScorePlugin
//	Reserve      the node is chosen; take note, or undo              ReservePlugin
//	Permit       bind now, wait, or not at all                       PermitPlugin
//	PreBind      last work before the pod is bound                   PreBindPlugin
//	Bind         bind the pod                                        BindPlugin
//	PostBind     the pod is bound                                    PostBindPlugin
//
// and beside them EventsPlugin: what happening in the cluster makes a pod that this plugin rejected
// worth another attempt.
//
// # A whole plugin
//
// A plugin package has a constant Name, which is what stands in the scheduler's configuration, and a
// function New that returns the plugin's own pointer type (not an interface: the build reads from
// that type which extension points the plugin has).
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
//	// Arguments are what stands under pluginConfig.
//	type Arguments struct {
//		MaxPods int `json:"maxPods"`
//	}
//
//	// Quiet keeps pods off nodes that hold many, and prefers those that hold few.
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
// A third function is optional. It tells what the plugin needs of the API server beyond what every
// scheduler may do. For the shipped plugins it becomes a ClusterRole by itself; of anyone else's
// only the source is read, so the same rules are listed in pmk-sched.yaml, under spec.rbac.rules:
//
//	func Rules(args scheduler.Arguments) ([]rbacv1.PolicyRule, error)
//
// # Rules of the road
//
// Methods are called from many goroutines: Filter and Score run for several nodes at a time, the
// points from PreBind on (and Unreserve) run beside the next pod's scheduling cycle. What a plugin
// keeps in itself needs a lock; what belongs to one pod's cycle goes into State. Pods, nodes and
// NodeInfo are shared and must not be changed. Filter and Score are on the path of every pod and
// node, so nothing there waits for a network: fetch in the background, read the result.
//
// A panic in a plugin ends the scheduler: the framework does not recover, and neither do the
// adapters, since a scheduler that goes on with a broken plugin places pods wrongly without a word.
// The process prints the stack, the container restarts, and pods in flight are scheduled again;
// nothing that was bound is lost.
//
// # Staying portable
//
// The releases are compiled with the Go version they name, from Go 1.15 for 1.20 to Go 1.26 for 1.37.
// A plugin that is to run on all of them does without generics, any, and newer parts of the standard
// library. What the releases do not share, the API does not have, and what an old release
// lacks and can be made up for is made up for: the node set of PreFilter before 1.24, Skip from
// PreFilter and PreScore before 1.27. PreEnqueue cannot be, so a plugin with it is refused for
// releases before 1.26.
//
// The package plugintest beside this one runs a plugin in an ordinary Go test.
package scheduler
