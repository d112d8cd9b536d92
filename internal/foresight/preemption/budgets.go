package preemption

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/kubelet"
)

// Budget is a PodDisruptionBudget.
type Budget struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Rule is its minAvailable or maxUnavailable.
	Rule string `json:"rule"`
	// Pods is the number of running pods that it selects, and Allowed the number that may be evicted
	// now: by its status, or computed from these pods if it has none.
	Pods    int   `json:"pods"`
	Allowed int32 `json:"allowed"`
	// EvictedBy names the classes whose new pods may evict the budget's pods in spite of it, and
	// Exposed counts these pods.
	EvictedBy []string `json:"evictedBy"`
	Exposed   int      `json:"exposed"`
	// Problems are the reasons why it does not hold, or holds too much.
	Problems []Problem `json:"problems"`

	covered map[string]bool // names of its pods
}

// Problem is a reason why a budget does not protect its pods, or blocks every eviction.
type Problem struct {
	// Kind is one of the constants below.
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// Kinds for a [Problem]. They do not change.
const (
	// SelectsNothing: no running pod matches the selector.
	SelectsNothing = "SelectsNothing"
	// NeverAllows: the rule allows no disruption, however many pods are ready.
	NeverAllows = "NeverAllows"
	// AllowsNone: the budget allows no disruption now.
	AllowsNone = "AllowsNone"
	// Overlaps: a pod has several budgets, so that the API refuses each eviction.
	Overlaps = "Overlaps"
	// Overridden: pods with higher priority may evict the budget's pods.
	Overridden = "Overridden"
	// Uncontrolled: the rule needs a controller's scale, but some of the budget's pods have no
	// controller.
	Uncontrolled = "Uncontrolled"
)

// budgetRows returns the budgets, and adds their names to the workloads that they select.
func (c *cluster) budgetRows(classes []Class, workloads []Workload) []Budget {
	rows := []Budget{}
	index := map[workloadKey]int{}
	for i := range workloads {
		index[workloads[i].key()] = i
	}
	ofPod := map[string][]string{} // names of budgets, by namespace and name of a pod
	var pods [][]*pod
	for i := range c.budgets {
		selected := c.selected(&c.budgets[i])
		pods = append(pods, selected)
		for _, p := range selected {
			ofPod[p.key()] = append(ofPod[p.key()], c.budgets[i].Name)
		}
	}
	for i := range c.budgets {
		rows = append(rows, newBudget(&c.budgets[i], pods[i], classes, ofPod))
		for _, p := range pods[i] {
			if w := &workloads[index[p.workload()]]; !slices.Contains(w.Budgets, c.budgets[i].Name) {
				w.Budgets = append(w.Budgets, c.budgets[i].Name)
			}
		}
	}
	slices.SortFunc(rows,
		func(a, b Budget) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
	return rows
}

// selected returns a budget's running pods.
func (c *cluster) selected(b *policyv1.PodDisruptionBudget) []*pod {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	none := c.emptySelectsNone[b.Namespace+"/"+b.Name] && selector != nil && selector.Empty()
	if err != nil || none { // the API server refuses malformed selectors
		return nil
	}
	var pods []*pod
	for i := range c.pods {
		p := &c.pods[i]
		if p.namespace == b.Namespace && p.running() && !p.leaving && selector.Matches(labels.Set(p.labels)) {
			pods = append(pods, p)
		}
	}
	return pods
}

func newBudget(b *policyv1.PodDisruptionBudget, pods []*pod, classes []Class, ofPod map[string][]string) Budget {
	row := Budget{
		Namespace: b.Namespace, Name: b.Name, Pods: len(pods),
		EvictedBy: []string{}, Problems: []Problem{}, covered: map[string]bool{},
	}
	row.Rule, row.Allowed = ruleOf(b, len(pods))
	evicting := map[string]bool{}
	overlapping, others := 0, map[string]bool{}
	loose := 0
	for _, p := range pods {
		row.covered[p.name] = true
		names := evictors(classes, p.priority)
		for _, name := range names {
			evicting[name] = true
		}
		if len(names) > 0 {
			row.Exposed++
		}
		if budgets := ofPod[p.key()]; len(budgets) > 1 {
			overlapping++
			for _, name := range budgets {
				others[name] = name != b.Name
			}
		}
		if p.kind == "Pod" {
			loose++
		}
	}
	for i := range classes {
		if evicting[classes[i].Name] {
			row.EvictedBy = append(row.EvictedBy, classes[i].Name)
		}
	}
	row.addProblems(b, overlapping, loose, others)
	return row
}

func (b *Budget) add(kind, format string, args ...any) {
	b.Problems = append(b.Problems, Problem{Kind: kind, Text: fmt.Sprintf(format, args...)})
}

func (b *Budget) addProblems(pdb *policyv1.PodDisruptionBudget, overlapping, loose int, others map[string]bool) {
	never := neverAllows(pdb, b.Pods)
	switch {
	case b.Pods == 0:
		b.add(SelectsNothing, "it selects no running pod")
	case never != "":
		b.add(NeverAllows, "%s: a drain of a node with one of its pods does not end", never)
	case b.Allowed == 0:
		b.add(AllowsNone, "it allows no disruption now: a drain of a node with one of its pods waits")
	}
	if overlapping > 0 {
		var names []string
		for name, other := range others {
			if other {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		b.add(Overlaps, "%s %s too: the API refuses to evict a pod with several budgets",
			plural.Phrase(overlapping, "pod has", "pods have"), strings.Join(names, ", "))
	}
	if b.Exposed > 0 {
		b.add(Overridden, "pods of %s may evict %d of its pods: a scheduler prefers other victims, and violates the budget if "+
			"there are none", strings.Join(b.EvictedBy, ", "), b.Exposed)
	}
	if loose > 0 && kubelet.NeedsScale(&pdb.Spec) {
		b.add(Uncontrolled, "%s no controller with a scale: with maxUnavailable or a percentage the budget allows "+
			"no disruption", plural.Phrase(loose, "pod has", "pods have"))
	}
}

// ruleOf returns a budget's rule as text, and how many disruptions it allows. Without a status that
// is computed as if all pods were ready and no more were expected.
func ruleOf(b *policyv1.PodDisruptionBudget, pods int) (rule string, allowed int32) {
	switch {
	case b.Spec.MaxUnavailable != nil:
		rule = "maxUnavailable " + b.Spec.MaxUnavailable.String()
	case b.Spec.MinAvailable != nil:
		rule = "minAvailable " + b.Spec.MinAvailable.String()
	default:
		rule = "minAvailable 1" // by default
	}
	if b.Status.ExpectedPods > 0 || b.Status.DisruptionsAllowed > 0 {
		return rule, b.Status.DisruptionsAllowed
	}
	return rule, int32(most(b, pods)) //nolint:gosec // at most the number of pods
}

// most returns how many disruptions a budget allows if all its pods are ready.
func most(b *policyv1.PodDisruptionBudget, pods int) int {
	return max(pods-kubelet.Desired(&b.Spec, pods), 0)
}

// neverAllows returns why a budget allows no disruption even if all its pods are ready. It is empty
// if it can allow one.
func neverAllows(b *policyv1.PodDisruptionBudget, pods int) string {
	expected := max(pods, int(b.Status.ExpectedPods))
	if most(b, expected) > 0 {
		return ""
	}
	rule, _ := ruleOf(b, expected)
	return fmt.Sprintf("%s of %s allows no disruption", rule, plural.Count(expected, "pod"))
}
