// Package ownership defines the labels and annotations by which pmk-sched recognizes its objects.
// An object is only changed or deleted if it has all [Labels].
package ownership

// Keys of labels and annotations. Keys of app.kubernetes.io are the recommended labels of
// Kubernetes.
const (
	// LabelManagedBy is [Manager] on every object that pmk-sched creates.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// LabelInstance is the name of the scheduler or extender of an object.
	LabelInstance = "app.kubernetes.io/instance"
	// LabelName is [Scheduler] or [Extender]. Together with LabelInstance it selects pods.
	LabelName = "app.kubernetes.io/name"
	// LabelVersion is the version of pmk-sched that created the object.
	LabelVersion = "app.kubernetes.io/version"
	// LabelComponent marks objects that are not part of the deployed scheduler itself.
	LabelComponent = "app.kubernetes.io/component"
	// LabelRelease is the Kubernetes release of a deployed scheduler, such as "v1.24.3".
	LabelRelease = "pmk-sched.io/release"
	// LabelRevision is the number of a revision.
	LabelRevision = "pmk-sched.io/revision"
)

// Values of labels.
const (
	// Manager is the value of [LabelManagedBy], and the field manager of server-side apply.
	Manager = "pmk-sched"
	// Scheduler is the value of [LabelName] on the objects of a scheduler.
	Scheduler = "kube-scheduler"
	// Extender is the value of [LabelName] on the objects of an extender.
	Extender = "pmk-extender"
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

// Helm is the value of [LabelManagedBy] that Helm sets on every object of a chart, overriding the
// chart.
const Helm = "Helm"

// Installed selects the objects that pmk-sched, or Helm from a chart of pmk-sched, installed. It
// may select more objects: see [IsInstalled].
const Installed = LabelManagedBy + " in (" + Manager + "," + Helm + ")," + LabelName + " in (" + Scheduler + "," +
	Extender + ")"

// IsInstalled reports whether an object that [Installed] selects is of pmk-sched: other charts have
// kube-schedulers too.
func IsInstalled(labels map[string]string) bool {
	return labels[LabelManagedBy] == Manager || labels[LabelManagedBy] == Helm && labels[LabelRelease] != ""
}

// Labels returns the labels of the objects of the scheduler or extender with that name.
func Labels(name string) map[string]string {
	return map[string]string{LabelManagedBy: Manager, LabelInstance: name}
}

// Owns reports whether an object with these labels is part of the scheduler or extender with that
// name.
func Owns(labels map[string]string, name string) bool {
	return labels[LabelManagedBy] == Manager && labels[LabelInstance] == name
}

// ClusterNames returns the names that are not for schedulers of pmk-sched because the cluster uses
// them: the default of spec.schedulerName, the lease of the default scheduler, and the default
// ServiceAccount.
func ClusterNames() []string { return []string{"default-scheduler", "kube-scheduler", "default"} }
