// Package extender serves portable plugins over HTTP, as a scheduler extender: what would be compiled into a kube-scheduler
// answers the scheduler's requests instead. One binary serves the schedulers of all releases, since the wire types did not change.
//
// A whole extender, but for the errors:
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
//	POST /preempt      Filter for every candidate, with its victims thought away
//	POST /bind         Reserve, PreBind, Bind or a plain Binding, PostBind
//	GET  /healthz      the process answers
//	GET  /readyz       the cache is filled and every policy is ready; ?exclude=NAME leaves a check out, ?verbose shows all
//	GET  /metrics      Prometheus
//
// Requests name nodes (nodeCacheCapable: true) or hold them whole; an answer has the form of its request. What goes wrong with filter and
// bind is told in the field Error of an answer with status 200, which the scheduler shows in the pod's event; the
// answers of prioritize and preempt have no such field, so there it is status 500.
//
// # What a plugin notices
//
// A scheduling cycle comes as separate requests, perhaps to separate replicas. A State lives for one request; so
// that Score finds what PreFilter wrote, prioritize runs PreFilter, too, of a plugin that has both. The extension
// points that no request stands for (PreEnqueue, QueueSort, PostFilter, Permit) are not called.
//
// The scheduler tells no extender which node it chose. A plugin that keeps account of that, with Reserve, is told
// when the cache sees a pod on a node: Reserve, and PostBind if it has that. Plugins without Reserve get PostBind from the verb bind only.
package extender
