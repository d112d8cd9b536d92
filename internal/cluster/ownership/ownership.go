// Package ownership defines the labels and annotations by which pmk-sched recognizes its objects.
// An object is only changed or deleted if it has all [Labels]. It also has what their pods have in
// common.
package ownership

import "fmt"

// Label and annotation keys. The keys app.kubernetes.io/… are Kubernetes' recommended labels.
const (
	// LabelManagedBy is [Manager] on every object that pmk-sched creates.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// LabelInstance is the name of an object's scheduler or extender.
	LabelInstance = "app.kubernetes.io/instance"
	// LabelName is [Scheduler] or [Extender]. Together with LabelInstance it selects pods.
	LabelName = "app.kubernetes.io/name"
	// LabelVersion is the pmk-sched version that created the object.
	LabelVersion = "app.kubernetes.io/version"
	// LabelComponent marks objects that are not part of the deployed scheduler itself.
	LabelComponent = "app.kubernetes.io/component"
	// LabelRelease is a deployed scheduler's Kubernetes release, such as "v1.24.3".
	LabelRelease = "pmk-sched.io/release"
	// LabelRevision is a revision's number.
	LabelRevision = "pmk-sched.io/revision"
	// AnnotationRoute on a pod is the scheduler that a route gave it.
	AnnotationRoute = "pmk-sched.io/route"
	// AnnotationReplacement identifies a replacement of the default scheduler, on its static pod.
	AnnotationReplacement = "pmk-sched.io/replacement"
)

// Label values.
const (
	// Manager is the value of [LabelManagedBy], and the field manager for server-side apply.
	Manager = "pmk-sched"
	// Scheduler is the value of [LabelName] on a scheduler's objects.
	Scheduler = "kube-scheduler"
	// Extender is the value of [LabelName] on an extender's objects.
	Extender = "pmk-extender"
	// Controller is the value of [LabelName] on the objects of `pmk-sched controller`.
	Controller = "pmk-sched-controller"
	// Admission is the value of [LabelName] on the objects of pmk-sched's webhooks.
	Admission = "pmk-sched-admission"
	// Arbiter is the name of the arbiter's webhook configuration.
	Arbiter = "pmk-sched-arbiter"
	// ComponentVerify is the value of [LabelComponent] on the namespaces that a verification creates
	// for its pod.
	ComponentVerify = "verify"
	// ComponentNodeRun is the value of [LabelComponent] on the pods that run pmk-sched on a
	// control-plane node, and on their Secrets.
	ComponentNodeRun = "node-run"
	// ComponentSimulation is the value of [LabelComponent] on the Jobs that run simulations, and on
	// their pods.
	ComponentSimulation = "simulation"
)

// Helm is the value of [LabelManagedBy] that Helm sets on every object in a chart, overriding the
// chart.
const Helm = "Helm"

// Installed selects the objects that pmk-sched, or Helm from a pmk-sched chart, installed. It may
// select more objects: see [IsInstalled].
const Installed = LabelManagedBy + " in (" + Manager + "," + Helm + ")," + LabelName + " in (" + Scheduler + "," +
	Extender + ")"

// IsInstalled reports whether an object that [Installed] selects is pmk-sched's: other charts have
// kube-schedulers too.
func IsInstalled(labels map[string]string) bool {
	return labels[LabelManagedBy] == Manager || labels[LabelManagedBy] == Helm && labels[LabelRelease] != ""
}

// RouteName returns the name of the objects that register the route of a scheduler.
func RouteName(scheduler string) string { return "pmk-sched-route-" + scheduler }

// RouteExpression returns the CEL expression with which the policy of a route changes a pod.
func RouteExpression(scheduler string) string {
	return fmt.Sprintf("Object{metadata: Object.metadata{annotations: {%q: %q}}, spec: Object.spec{schedulerName: %q}}",
		AnnotationRoute, scheduler, scheduler)
}

// Labels returns the object labels for the scheduler or extender with that name.
func Labels(name string) map[string]string {
	return map[string]string{LabelManagedBy: Manager, LabelInstance: name}
}

// Owns reports whether an object with these labels is part of the scheduler or extender with that
// name.
func Owns(labels map[string]string, name string) bool {
	return labels[LabelManagedBy] == Manager && labels[LabelInstance] == name
}

// ClusterNames returns the names that are not for pmk-sched schedulers because the cluster uses
// them: the default for spec.schedulerName, the default scheduler's lease, and the default
// ServiceAccount.
func ClusterNames() []string { return []string{"default-scheduler", "kube-scheduler", "default"} }
