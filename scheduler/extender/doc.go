// Package extender serves portable plugins over HTTP, as a scheduler extender: code that would
// otherwise be compiled into a kube-scheduler answers the scheduler's requests. One binary serves
// the schedulers of all releases, since the wire types did not change.
//
// A complete extender, without error handling:
//
//	handle, err := extender.NewHandle(extender.HandleOptions{Config: config})
//	policy, err := quiet.New(ctx, scheduler.NewArguments(nil), handle)
//	e, err := extender.New(extender.Options{Handle: handle, Policies: []extender.Policy{{Plugin: policy}}})
//	err = handle.Start(ctx)
//	err = extender.Serve(ctx, extender.ServeOptions{Listen: "127.0.0.1:8888"}, e.Handler())
//
// # Verbs
//
//	POST /filter       PreFilter, and Filter for every node
//	POST /prioritize   PreScore, Score and NormalizeScore; weighted, and scaled to 0 to 10
//	POST /preempt      Filter for every candidate without its victims
//	POST /bind         Reserve, PreBind, Bind or a plain Binding, PostBind
//	GET  /healthz      the process answers
//	GET  /readyz       the cache is filled and every policy is ready; ?exclude=NAME skips a check, ?verbose shows all
//	GET  /answered     the verbs that were answered for the pod of a verification, by its UID (?pod=UID)
//	GET  /metrics      Prometheus
//
// Requests contain node names (nodeCacheCapable: true) or whole nodes; an answer uses the form of
// its request. filter and bind report errors in the field Error of an answer with status 200, which
// the scheduler shows in the pod's event; prioritize and preempt answers have no such field, so
// they use status 500.
//
// # Differences for a plugin
//
// A scheduling cycle is split into separate requests, possibly to different replicas. A State lives
// for one request; so that Score finds the values that PreFilter wrote, prioritize also runs
// PreFilter of a plugin that has both. The extension points without a request (PreEnqueue,
// QueueSort, PostFilter) are not called. A plugin with Permit is refused: it would not be asked for
// its permission.
//
// The scheduler does not report the chosen node to an extender. A plugin with Reserve is therefore
// called when the cache sees a pod on a node: Reserve, and PostBind if the plugin implements it.
// Plugins without Reserve get PostBind only from the verb bind.
package extender
