// Package preemption answers which pods can be evicted for which others: priority classes and their
// pods, the workloads that a class may evict, and PodDisruptionBudgets that do not protect their
// pods. A simulation adds the node on which a pod in each class lands, which only a scheduler can
// decide.
//
// The rules are those in the plugin DefaultPreemption: a pod may evict every pod with lower
// priority, unless its preemptionPolicy is Never
// (pkg/scheduler/framework/plugins/defaultpreemption). It prefers victims without a budget that
// would be violated, and violates budgets if no node has other victims.
package preemption

// Result describes who can evict whom in a cluster.
type Result struct {
	// Release is the release, such as v1.24.3, and Scheduler the name of the scheduler that decided
	// the landings.
	Release   string `json:"release"`
	Scheduler string `json:"scheduler"`
	// Classes are ordered by value, the highest first.
	Classes []Class `json:"classes"`
	// Workloads are the owners of pods, ordered by namespace, kind and name.
	Workloads []Workload `json:"workloads"`
	// Namespaces lists, for each namespace with pods that can be evicted, the namespaces whose pods
	// may evict them today. It is empty if there are more than 200 namespaces.
	Namespaces []Namespace `json:"namespaces"`
	// Budgets are the PodDisruptionBudgets, ordered by namespace and name.
	Budgets []Budget `json:"budgets"`
	// Landings are the expected placements for a pod in each class, in the order of Classes.
	Landings []Landing `json:"landings"`
	// Unknown lists facts that decide about evictions and that the objects do not contain.
	Unknown []string `json:"unknown"`
	// Programs are the programs that ran: their versions, origins and digests.
	Programs []string `json:"programs,omitempty"`
	// Notes are the simulation's deviations from the cluster.
	Notes []string `json:"notes,omitempty"`
}

// NoClass is the class name for pods without a priorityClassName.
const NoClass = "(none)"

// Class is a PriorityClass, or [NoClass].
type Class struct {
	Name string `json:"name"`
	// Value is the priority for the class's new pods.
	Value         int32 `json:"value"`
	GlobalDefault bool  `json:"globalDefault,omitempty"`
	// Never is set if pods in the class do not evict others.
	Never bool `json:"never,omitempty"`
	// Running and Pending count its pods.
	Running int `json:"running"`
	Pending int `json:"pending"`
	// Evicts names the classes with running pods that a new pod in the class may evict, and EvictsPods
	// counts these pods.
	Evicts     []string `json:"evicts"`
	EvictsPods int      `json:"evictsPods"`
	// EvictedBy names the classes whose new pods may evict running pods in the class.
	EvictedBy []string `json:"evictedBy"`
	Problems  []string `json:"problems,omitempty"`
}

// Workload are the pods of one owner with the same class, priority and preemption policy.
type Workload struct {
	Namespace string `json:"namespace"`
	// Kind is Pod for a pod without a controller. A Deployment's pods belong to the Deployment.
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	Class    string `json:"class"`
	Priority int32  `json:"priority"`
	Never    bool   `json:"never,omitempty"`
	Running  int    `json:"running"`
	Pending  int    `json:"pending"`
	// EvictedBy names the classes whose new pods may evict its running pods.
	EvictedBy []string `json:"evictedBy"`
	// Budgets names the budgets that select its pods.
	Budgets []string `json:"budgets,omitempty"`
}

// Namespace has pods that can be evicted.
type Namespace struct {
	Name string `json:"name"`
	// EvictedBy are the namespaces with a pod that may evict a pod in this one, or the namespace
	// itself.
	EvictedBy []Evictor `json:"evictedBy"`
}

// Evictor is a namespace that may evict pods in another one.
type Evictor struct {
	Namespace string `json:"namespace"`
	// Class is the class of its highest-priority pods that may evict others.
	Class string `json:"class"`
	// Pods counts the pods that these may evict.
	Pods int `json:"pods"`
}

// Landing is the expected placement for a pod that is like a class's pods.
type Landing struct {
	Class string `json:"class"`
	// Requests are the pod's requests. Pods is the number of pods whose median they are. It is 0 if
	// they were given or taken from all classes.
	Requests map[string]string `json:"requests"`
	Pods     int               `json:"pods"`
	// Node is empty if the pod fits nowhere, and Reason then is the scheduler's reason.
	Node   string `json:"node,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Evicted are the victims.
	Evicted []Victim `json:"evicted"`
}

// Victim is a pod that makes room for another.
type Victim struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Node      string `json:"node"`
	Class     string `json:"class"`
	Priority  int32  `json:"priority"`
	// Violated names the budgets that select it and allow no disruption.
	Violated []string `json:"violated,omitempty"`
}
