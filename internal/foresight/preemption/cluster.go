package preemption

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentresource "k8s.io/component-helpers/resource"
)

// cluster collects the objects that decide about evictions. The zero value is empty.
type cluster struct {
	classes []schedulingv1.PriorityClass
	pods    []pod
	// owners are ReplicaSets' controllers, by namespace and name.
	owners  map[string]string
	budgets []policyv1.PodDisruptionBudget
	// emptySelectsNone names budgets at policy/v1beta1, whose empty selector selects no pod; at
	// policy/v1 it selects all pods in the namespace.
	emptySelectsNone map[string]bool
}

// pod has the pod fields that decide about evictions.
type pod struct {
	namespace, name, node string
	labels                map[string]string
	class                 string
	priority              int32
	never                 bool
	// kind and owner name the controller, or the pod itself.
	kind, owner string
	// leaving is set for pods that are being deleted.
	leaving  bool
	requests corev1.ResourceList
}

func (p *pod) key() string   { return p.namespace + "/" + p.name }
func (p *pod) running() bool { return p.node != "" }

// addClass adds a PriorityClass.
func (c *cluster) addClass(class *schedulingv1.PriorityClass) { c.classes = append(c.classes, *class) }

// addReplicaSet adds a ReplicaSet: its pods belong to its Deployment.
func (c *cluster) addReplicaSet(meta *metav1.ObjectMeta) {
	owner := metav1.GetControllerOf(meta)
	if owner == nil || owner.Kind != "Deployment" {
		return
	}
	if c.owners == nil {
		c.owners = map[string]string{}
	}
	c.owners[meta.Namespace+"/"+meta.Name] = owner.Name
}

// addBudget adds a PodDisruptionBudget. beta is set if it was read as policy/v1beta1.
func (c *cluster) addBudget(budget *policyv1.PodDisruptionBudget, beta bool) {
	c.budgets = append(c.budgets, *budget)
	if beta {
		if c.emptySelectsNone == nil {
			c.emptySelectsNone = map[string]bool{}
		}
		c.emptySelectsNone[budget.Namespace+"/"+budget.Name] = true
	}
}

// addPod adds a pod, unless it has finished.
func (c *cluster) addPod(p *corev1.Pod) {
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return
	}
	found := pod{
		namespace: p.Namespace, name: p.Name, node: p.Spec.NodeName, labels: p.Labels,
		class: cmp.Or(p.Spec.PriorityClassName, NoClass), kind: "Pod", owner: p.Name, leaving: p.DeletionTimestamp != nil,
		never: p.Spec.PreemptionPolicy != nil && *p.Spec.PreemptionPolicy == corev1.PreemptNever,
		requests: componentresource.PodRequests(p,
			componentresource.PodResourcesOptions{UseStatusResources: true}),
	}
	if p.Spec.Priority != nil {
		found.priority = *p.Spec.Priority
	}
	if owner := metav1.GetControllerOf(p); owner != nil {
		found.kind, found.owner = owner.Kind, owner.Name
	}
	c.pods = append(c.pods, found)
}

// resolve replaces ReplicaSets by their Deployments.
func (c *cluster) resolve() {
	for i := range c.pods {
		p := &c.pods[i]
		if deployment := c.owners[p.namespace+"/"+p.owner]; p.kind == "ReplicaSet" && deployment != "" {
			p.kind, p.owner = "Deployment", deployment
		}
	}
}

// mostNamespaces is the greatest number of namespaces that are compared with each other.
const mostNamespaces = 200

// analyze returns the result without landings.
func (c *cluster) analyze() *Result {
	c.resolve()
	r := &Result{Classes: c.classRows(), Namespaces: []Namespace{}, Landings: []Landing{}, Unknown: unknown()}
	r.Workloads = c.workloads(r.Classes)
	r.Budgets = c.budgetRows(r.Classes, r.Workloads)
	if namespaces := c.namespaces(); len(namespaces) > mostNamespaces {
		r.Notes = append(r.Notes, "namespaces are not compared: there are too many of them")
	} else {
		r.Namespaces = c.compareNamespaces(namespaces)
	}
	return r
}

// unknown lists the questions that the objects in a snapshot do not answer.
func unknown() []string {
	return []string{
		"who may use a class: ResourceQuotas and admission webhooks are not in a snapshot",
		"whether there is a node for the eviction of each pair: that depends on requests, affinity, taints and volumes of " +
			"both pods; the landings are decided by the scheduler for one pod of each class",
		"evictions by kubelets and taints: they follow the use of resources and the conditions of nodes",
		"other plugins of the extension point PostFilter, and extenders with a preemptVerb: they choose victims by rules of " +
			"their own",
	}
}

func (c *cluster) namespaces() []string {
	names := make([]string, 0, len(c.pods))
	for i := range c.pods {
		names = append(names, c.pods[i].namespace)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// compareNamespaces returns the namespaces with pods that today's pods may evict.
func (c *cluster) compareNamespaces(names []string) []Namespace {
	type strongest struct {
		priority int32
		class    string
	}
	evictors, victims := map[string]strongest{}, map[string][]int32{}
	for i := range c.pods {
		p := &c.pods[i]
		if s, ok := evictors[p.namespace]; !p.never && (!ok || p.priority > s.priority) {
			evictors[p.namespace] = strongest{p.priority, p.class}
		}
		if p.running() && !p.leaving {
			victims[p.namespace] = append(victims[p.namespace], p.priority)
		}
	}
	all := []Namespace{}
	for _, victim := range names {
		n := Namespace{Name: victim}
		for _, evictor := range names {
			s, ok := evictors[evictor]
			if !ok {
				continue
			}
			pods := 0
			for _, priority := range victims[victim] {
				if priority < s.priority {
					pods++
				}
			}
			if pods > 0 {
				n.EvictedBy = append(n.EvictedBy, Evictor{Namespace: evictor, Class: s.class, Pods: pods})
			}
		}
		if len(n.EvictedBy) > 0 {
			all = append(all, n)
		}
	}
	return all
}

// victim describes a pod that a scheduler evicted, by namespace and name.
func (c *cluster) victim(namespace, name, node string, budgets []Budget) Victim {
	v := Victim{Namespace: namespace, Name: name, Node: node, Class: NoClass}
	at := slices.IndexFunc(c.pods, func(p pod) bool { return p.namespace == namespace && p.name == name })
	if at < 0 {
		return v
	}
	p := &c.pods[at]
	v.Class, v.Priority = p.class, p.priority
	for i := range budgets {
		if b := &budgets[i]; b.Namespace == namespace && b.Allowed == 0 && b.covered[name] {
			v.Violated = append(v.Violated, b.Name)
		}
	}
	return v
}
