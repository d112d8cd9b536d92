package preemption

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
)

// classRows returns the classes with their pods, and who evicts whom.
func (c *cluster) classRows() []Class {
	rows := c.classNames()
	for i := range c.pods {
		p := &c.pods[i]
		at := slices.IndexFunc(rows, func(row Class) bool { return row.Name == p.class })
		if p.running() {
			rows[at].Running++
		} else {
			rows[at].Pending++
		}
	}
	for i := range rows {
		c.relate(&rows[i], rows)
		rows[i].Problems = c.classProblems(&rows[i], rows)
	}
	return rows
}

// classNames returns the cluster's classes, classes that only pods name, and [NoClass] if pods have
// none.
func (c *cluster) classNames() []Class {
	rows := []Class{}
	for i := range c.classes {
		rows = append(rows, newClass(&c.classes[i]))
	}
	for i := range c.pods {
		p := &c.pods[i]
		if !slices.ContainsFunc(rows, func(row Class) bool { return row.Name == p.class }) {
			rows = append(rows, Class{Name: p.class, Value: p.priority, Never: p.never})
		}
	}
	slices.SortFunc(rows,
		func(a, b Class) int { return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Name, b.Name)) })
	return rows
}

func newClass(class *schedulingv1.PriorityClass) Class {
	return Class{
		Name: class.Name, Value: class.Value, GlobalDefault: class.GlobalDefault,
		Never: class.PreemptionPolicy != nil && *class.PreemptionPolicy == corev1.PreemptNever,
	}
}

// relate sets which classes a class may evict, and which evict it. A pod counts with its own
// priority, which differs from its class's value if the class was created again.
func (c *cluster) relate(row *Class, rows []Class) {
	victims := map[string]bool{}
	var own []int32 // priorities of its running pods
	for i := range c.pods {
		p := &c.pods[i]
		if !p.running() || p.leaving {
			continue
		}
		if !row.Never && p.priority < row.Value {
			victims[p.class] = true
			row.EvictsPods++
		}
		if p.class == row.Name {
			own = append(own, p.priority)
		}
	}
	row.Evicts, row.EvictedBy = []string{}, []string{}
	for i := range rows {
		if victims[rows[i].Name] {
			row.Evicts = append(row.Evicts, rows[i].Name)
		}
	}
	if len(own) > 0 {
		row.EvictedBy = evictors(rows, slices.Min(own))
	}
}

// evictors returns the classes whose new pods may evict a pod with a priority.
func evictors(rows []Class, priority int32) []string {
	names := []string{}
	for i := range rows {
		if !rows[i].Never && rows[i].Value > priority {
			names = append(names, rows[i].Name)
		}
	}
	return names
}

// system is the name prefix for classes that each cluster has.
const system = "system-"

func (c *cluster) classProblems(row *Class, rows []Class) []string {
	var problems []string
	exists := slices.ContainsFunc(c.classes, func(class schedulingv1.PriorityClass) bool { return class.Name == row.Name })
	if row.Name != NoClass && !exists {
		problems = append(problems, "the class does not exist: pods of it cannot be created again")
	}
	if row.Running+row.Pending == 0 && !strings.HasPrefix(row.Name, system) {
		problems = append(problems, "no pod uses it")
	}
	differing, policies := 0, 0
	for i := range c.pods {
		if p := &c.pods[i]; p.class == row.Name {
			if p.priority != row.Value {
				differing++
			}
			if p.never != row.Never {
				policies++
			}
		}
	}
	if differing > 0 {
		problems = append(problems, fmt.Sprintf("%s another priority than %d, the value of the class today",
			plural.Phrase(differing, "pod has", "pods have"), row.Value))
	}
	if policies > 0 {
		problems = append(problems, plural.Phrase(policies, "pod has", "pods have")+" another preemptionPolicy than the class")
	}
	for i := range rows {
		if other := &rows[i]; exists && other.Name != row.Name && other.Value == row.Value && other.Name != NoClass {
			problems = append(problems, "it has the value of "+other.Name+": pods of the two do not evict each other")
		}
	}
	return problems
}

// workloadKey identifies the pods in a [Workload].
type workloadKey struct {
	namespace, kind, name, class string
	priority                     int32
	never                        bool
}

func (p *pod) workload() workloadKey {
	return workloadKey{p.namespace, p.kind, p.owner, p.class, p.priority, p.never}
}

func (w *Workload) key() workloadKey {
	return workloadKey{w.Namespace, w.Kind, w.Name, w.Class, w.Priority, w.Never}
}

// workloads groups the pods by their owners.
func (c *cluster) workloads(classes []Class) []Workload {
	index, all := map[workloadKey]int{}, []Workload{}
	for i := range c.pods {
		p := &c.pods[i]
		key := p.workload()
		at, ok := index[key]
		if !ok {
			at, index[key] = len(all), len(all)
			all = append(all, Workload{Namespace: p.namespace, Kind: p.kind, Name: p.owner, Class: p.class,
				Priority: p.priority, Never: p.never, EvictedBy: evictors(classes, p.priority)})
		}
		if p.running() {
			all[at].Running++
		} else {
			all[at].Pending++
		}
	}
	slices.SortFunc(all, func(a, b Workload) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name),
			cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Class, b.Class))
	})
	for i := range all {
		if all[i].Running == 0 {
			all[i].EvictedBy = []string{}
		}
	}
	return all
}
