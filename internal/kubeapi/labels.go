package kubeapi

// Labels that mark an object as ours. An object is only ever changed or deleted when it carries both.
const (
	// LabelManagedBy has the value [ManagedBy] on every object that pmk-sched makes.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// LabelInstance has the name of the scheduler that the object belongs to.
	LabelInstance = "app.kubernetes.io/instance"
	// LabelName says what an object belongs to: kube-scheduler, or [Extender].
	LabelName = "app.kubernetes.io/name"
	// Extender is the value of [LabelName] on what belongs to an extender.
	Extender = "pmk-extender"
	// LabelComponent tells objects apart that are not part of the deployed scheduler itself.
	LabelComponent = "app.kubernetes.io/component"
	// ComponentVerify is the value of [LabelComponent] on the namespaces that a verification makes for its pod.
	ComponentVerify = "verify"
	// LabelRelease has the Kubernetes release of a deployed scheduler, such as "v1.24.3".
	LabelRelease = "pmk-sched.io/release"
	// AnnotationFlags has, on a scheduler's Deployment, the flags that it was deployed with as a JSON list: what has to be said
	// again to deploy it once more.
	AnnotationFlags = "pmk-sched.io/flags"
	// ManagedBy is the value of [LabelManagedBy], and the field manager of server-side apply.
	ManagedBy = "pmk-sched"
)

// OwnerLabels returns the labels that mark an object as belonging to the scheduler of that name.
func OwnerLabels(name string) map[string]string {
	return map[string]string{LabelManagedBy: ManagedBy, LabelInstance: name}
}

// OwnedBy reports whether labels mark an object as belonging to the scheduler of that name.
func OwnedBy(labels map[string]string, name string) bool {
	return labels[LabelManagedBy] == ManagedBy && labels[LabelInstance] == name
}
