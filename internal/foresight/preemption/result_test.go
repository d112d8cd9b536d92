package preemption

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/test/golden"
)

// pod adds a pod of an owner, such as "Job a".
func (c *cluster) pod(namespace, name, owner, class string, priority int32, change ...func(*corev1.Pod)) {
	p := newPod(namespace, name, "", class, priority, "1")
	if kind, of, ok := strings.Cut(owner, " "); ok {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: of, Controller: ptr(true)}}
	}
	for _, do := range change {
		do(p)
	}
	c.addPod(p)
}

func app(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels["app"] = name }
}

func pending(p *corev1.Pod) { p.Spec.NodeName = "" }

func never(p *corev1.Pod) { p.Spec.PreemptionPolicy = ptr(corev1.PreemptNever) }

func leaving(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }

// richCluster has every relation of classes, workloads, namespaces and budgets.
func richCluster() *cluster {
	c := &cluster{}
	for _, class := range []schedulingv1.PriorityClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "unused"}, Value: 7},
		{ObjectMeta: metav1.ObjectMeta{Name: "zero"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "lower"}, Value: 10, PreemptionPolicy: ptr(corev1.PreemptLowerPriority)},
		{ObjectMeta: metav1.ObjectMeta{Name: "same"}, Value: 100},
		{ObjectMeta: metav1.ObjectMeta{Name: "normal"}, Value: 100, GlobalDefault: true},
		{ObjectMeta: metav1.ObjectMeta{Name: "patient"}, Value: 500, PreemptionPolicy: ptr(corev1.PreemptNever)},
		{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000},
		{ObjectMeta: metav1.ObjectMeta{Name: "system-cluster-critical"}, Value: 2000000000},
	} {
		c.addClass(&class)
	}
	replicaSet := func(name string, owners ...metav1.OwnerReference) {
		c.addReplicaSet(&metav1.ObjectMeta{Namespace: "a", Name: name, OwnerReferences: owners})
	}
	replicaSet("web-1", metav1.OwnerReference{Kind: "Deployment", Name: "web", Controller: ptr(true)})
	replicaSet("api-1", metav1.OwnerReference{Kind: "Deployment", Name: "api", Controller: ptr(true)})
	replicaSet("bare-1", metav1.OwnerReference{Kind: "Rollout", Name: "bare", Controller: ptr(true)})
	replicaSet("alone-1", metav1.OwnerReference{Kind: "Deployment", Name: "alone"})

	c.pod("b", "leaving", "Job lost", "lower", 5, app("job"), leaving)
	c.pod("b", "job-2", "Job job", "lower", 10, app("job"))
	c.pod("b", "job-1", "Job job", "lower", 10, app("job"))
	c.pod("b", "waits", "Job waits", "lower", 10, app("job"), pending, never)
	c.pod("b", "waits-too", "Job waits", "lower", 10, pending, never)
	c.pod("b", "loose", "", "", 0, app("loose"), func(p *corev1.Pod) { p.Spec.Priority = nil })
	c.pod("b", "failed", "", "lower", 10, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
	c.pod("a", "web-3", "ReplicaSet web-1", "high", 900, app("web")) // from before the class was created again
	c.pod("a", "web-2", "ReplicaSet web-1", "high", 1000, app("web"), pending)
	c.pod("a", "web-1", "ReplicaSet web-1", "high", 1000, app("web"))
	c.pod("a", "api-1", "ReplicaSet api-1", "normal", 100)
	c.pod("a", "bare-1", "ReplicaSet bare-1", "normal", 100, func(p *corev1.Pod) {
		p.Spec.PreemptionPolicy = ptr(corev1.PreemptLowerPriority)
	})
	c.pod("a", "alone-1", "ReplicaSet alone-1", "same", 100)
	c.pod("a", "web-0", "StatefulSet web-1", "normal", 100) // named as the ReplicaSet
	c.pod("c", "patient", "Job patient", "patient", 500, never, app("p"))
	c.pod("c", "strict", "Job patient", "patient", 450, never)
	c.pod("c", "old", "Job old", "gone", 50, never, app("p"))
	c.pod("d", "agent", "DaemonSet agent", "zero", 0)
	c.pod("d", "mirror", "Node n", "", 0)
	c.pod("d", "spare", "Job spare", "spare", -5, never)
	c.pod("d", "more", "Job spare", "spare", -5)
	c.pod("e", "first", "", "normal", 100, pending)
	c.pod("e", "second", "", "same", 100, pending)

	budget := func(
		namespace, name string, spec policyv1.PodDisruptionBudgetSpec, status policyv1.PodDisruptionBudgetStatus, beta bool,
	) {
		c.addBudget(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec,
			Status: status}, beta)
	}
	labels := func(name string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	}
	all, none := &metav1.LabelSelector{}, policyv1.PodDisruptionBudgetStatus{}
	one, two, zero := ptr(intstr.FromInt32(1)), ptr(intstr.FromInt32(2)), ptr(intstr.FromInt32(0))
	budget("d", "agents", policyv1.PodDisruptionBudgetSpec{Selector: all, MinAvailable: one}, none, false)
	budget("b", "jobs", policyv1.PodDisruptionBudgetSpec{Selector: labels("job"), MaxUnavailable: one}, none, false)
	budget("b", "half", policyv1.PodDisruptionBudgetSpec{Selector: all, MinAvailable: ptr(intstr.FromString("50%"))}, none,
		false)
	budget("b", "loose", policyv1.PodDisruptionBudgetSpec{Selector: labels("loose"), MinAvailable: one},
		policyv1.PodDisruptionBudgetStatus{ExpectedPods: 1}, false)
	budget("b", "beta", policyv1.PodDisruptionBudgetSpec{Selector: all}, none, true)
	budget("b", "beta-jobs", policyv1.PodDisruptionBudgetSpec{Selector: labels("job"), MinAvailable: one}, none, true)
	budget("a", "nothing", policyv1.PodDisruptionBudgetSpec{}, none, true)
	budget("a", "malformed", policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Is"}}}}, none, false)
	budget("a", "web", policyv1.PodDisruptionBudgetSpec{Selector: labels("web"), MinAvailable: two},
		policyv1.PodDisruptionBudgetStatus{ExpectedPods: 3, CurrentHealthy: 2, DesiredHealthy: 2}, false)
	budget("c", "fixed", policyv1.PodDisruptionBudgetSpec{Selector: labels("p"), MaxUnavailable: zero}, none, false)
	budget("c", "fresh", policyv1.PodDisruptionBudgetSpec{Selector: all, MinAvailable: one},
		policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1}, false)
	return c
}

func TestWhoCanEvictWhom(t *testing.T) {
	r := richCluster().analyze()
	r.Unknown = nil
	text, err := yaml.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/result.yaml", text)
}

func TestNamespacesAreComparedIfThereAreNotTooMany(t *testing.T) {
	for n, compared := range map[int]bool{200: true, 201: false} {
		c := &cluster{}
		for i := range n {
			c.pod(fmt.Sprintf("n%03d", i), "p", "", "", int32(i))
		}
		r := c.analyze()
		if (len(r.Namespaces) == n-1) != compared || (len(r.Notes) == 0) != compared || r.Namespaces == nil {
			t.Errorf("%d namespaces: %d compared, notes %q", n, len(r.Namespaces), r.Notes)
		}
	}
}

// A victim violates the budgets of its namespace that select it and allow no disruption.
func TestVictimsAndTheirBudgets(t *testing.T) {
	c := richCluster()
	budgets := c.analyze().Budgets
	for _, want := range []Victim{
		{Namespace: "c", Name: "patient", Node: "x", Class: "patient", Priority: 500, Violated: []string{"fixed"}},
		{Namespace: "c", Name: "strict", Node: "x", Class: "patient", Priority: 450},
		{Namespace: "a", Name: "web-3", Node: "x", Class: "high", Priority: 900, Violated: []string{"web"}},
		{Namespace: "a", Name: "api-1", Node: "x", Class: "normal", Priority: 100},
		{Namespace: "b", Name: "leaving", Node: "x", Class: "lower", Priority: 5},
		{Namespace: "b", Name: "patient", Node: "x", Class: NoClass},
		{Namespace: "b", Name: "loose", Node: "x", Class: NoClass, Violated: []string{"loose"}},
	} {
		if diff := cmp.Diff(want, c.victim(want.Namespace, want.Name, "x", budgets)); diff != "" {
			t.Errorf("%s/%s (-want +got):\n%s", want.Namespace, want.Name, diff)
		}
	}
}

// Pods of DaemonSets and static pods are not typical of a class without pods. A resource that fewer
// than half of the pods request, or none of it, is left out.
func TestRequestsOfClassesWithoutPods(t *testing.T) {
	c := &cluster{}
	with := func(list corev1.ResourceList) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list }
	}
	amount := resource.MustParse
	zero := amount("0")
	c.pod("n", "a", "DaemonSet d", "agents", 1, with(corev1.ResourceList{"cpu": amount("64")}))
	c.pod("n", "b", "Node n", "agents", 1, with(corev1.ResourceList{"cpu": amount("32"), "gpu": amount("1")}))
	c.pod("n", "c", "", "high", 1, with(corev1.ResourceList{"cpu": amount("3"), "disk": amount("2"), "memory": zero}))
	c.pod("n", "d", "", "high", 1, with(corev1.ResourceList{"cpu": amount("1"), "disk": amount("1"), "memory": zero}))
	c.pod("n", "e", "", "low", 1, with(corev1.ResourceList{"cpu": amount("4"), "gpu": amount("1")}))
	c.pod("n", "f", "", "low", 1, with(corev1.ResourceList{"cpu": amount("2")}))
	for class, want := range map[string]struct {
		requests string
		pods     int
	}{
		"agents": {`{"cpu":"64","gpu":"1"}`, 2}, "unused": {`{"cpu":"3","disk":"2"}`, 0},
		"low": {`{"cpu":"4","gpu":"1"}`, 2}, "high": {`{"cpu":"3","disk":"2"}`, 2},
	} {
		requests, pods := c.requests(class)
		text, err := yaml.Marshal(requests)
		if err == nil {
			text, err = yaml.YAMLToJSON(text)
		}
		if err != nil || string(text) != want.requests || pods != want.pods {
			t.Errorf("class %s: %d pods, %s, %v", class, pods, text, err)
		}
	}
	if requests, pods := (&cluster{}).requests(""); len(requests) != 0 || pods != 0 {
		t.Errorf("without pods: %v, %d", requests, pods)
	}
}
