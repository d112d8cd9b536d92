package preemption

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func ptr[T any](value T) *T { return &value }

// newPod returns a running pod of a ReplicaSet named after its label app.
func newPod(namespace, name, app, class string, priority int32, cpu string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{PriorityClassName: class, Priority: &priority, NodeName: "n", Containers: []corev1.Container{
			{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}},
	}
	if app != "" {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: app + "-5d4f", Controller: ptr(true)}}
	}
	return p
}

func newCluster() *cluster {
	c := &cluster{}
	for name, value := range map[string]int32{"high": 1000, "patient": 500, "low": 10, "twin": 10} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		if name == "patient" {
			class.PreemptionPolicy = ptr(corev1.PreemptNever)
		}
		c.addClass(class)
	}
	for _, app := range []string{"web", "job"} {
		c.addReplicaSet(&metav1.ObjectMeta{Namespace: "shop", Name: app + "-5d4f",
			OwnerReferences: []metav1.OwnerReference{{Kind: "Deployment", Name: app, Controller: ptr(true)}}})
	}
	c.addPod(newPod("shop", "web-1", "web", "high", 1000, "1"))
	c.addPod(newPod("shop", "web-2", "web", "high", 900, "3")) // of the class before it was created again
	waiting := newPod("shop", "wait", "", "patient", 500, "1")
	waiting.Spec.NodeName, waiting.Spec.PreemptionPolicy = "", ptr(corev1.PreemptNever)
	c.addPod(waiting)
	c.addPod(newPod("batch", "job-1", "job", "low", 10, "2"))
	c.addPod(newPod("batch", "job-2", "job", "low", 10, "2"))
	leaving := newPod("batch", "leaving", "", "", 0, "2")
	leaving.DeletionTimestamp = &metav1.Time{}
	c.addPod(leaving)
	done := newPod("batch", "done", "", "low", 10, "2")
	done.Status.Phase = corev1.PodSucceeded
	c.addPod(done)
	return c
}

func TestClassesEvictPodsOfLowerPriority(t *testing.T) {
	got := newCluster().analyze().Classes
	want := []Class{
		{Name: "high", Value: 1000, Running: 2, Evicts: []string{"high", "low"}, EvictsPods: 3, EvictedBy: []string{"high"},
			Problems: []string{"1 pod has another priority than 1000, the value of the class today"}},
		{Name: "patient", Value: 500, Never: true, Pending: 1, Evicts: []string{}, EvictedBy: []string{}},
		{Name: "low", Value: 10, Running: 2, Evicts: []string{}, EvictedBy: []string{"high"},
			Problems: []string{"it has the value of twin: pods of the two do not evict each other"}},
		{Name: "twin", Value: 10, Evicts: []string{}, EvictedBy: []string{}, Problems: []string{"no pod uses it",
			"it has the value of low: pods of the two do not evict each other"}},
		{Name: NoClass, Running: 1, Evicts: []string{}, EvictedBy: []string{}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWorkloadsAndNamespacesNameTheirEvictors(t *testing.T) {
	r := newCluster().analyze()
	workloads := []Workload{
		{Namespace: "batch", Kind: "Pod", Name: "leaving", Class: NoClass, Running: 1,
			EvictedBy: []string{"high", "low", "twin"}},
		{Namespace: "batch", Kind: "ReplicaSet", Name: "job-5d4f", Class: "low", Priority: 10, Running: 2,
			EvictedBy: []string{"high"}},
		{Namespace: "shop", Kind: "Deployment", Name: "web", Class: "high", Priority: 1000, Running: 1,
			EvictedBy: []string{}},
		{Namespace: "shop", Kind: "Deployment", Name: "web", Class: "high", Priority: 900, Running: 1,
			EvictedBy: []string{"high"}},
		{Namespace: "shop", Kind: "Pod", Name: "wait", Class: "patient", Priority: 500, Never: true, Pending: 1,
			EvictedBy: []string{}},
	}
	if diff := cmp.Diff(workloads, r.Workloads); diff != "" {
		t.Errorf("workloads (-want +got):\n%s", diff)
	}
	namespaces := []Namespace{
		{Name: "batch", EvictedBy: []Evictor{{Namespace: "shop", Class: "high", Pods: 2}}},
		{Name: "shop", EvictedBy: []Evictor{{Namespace: "shop", Class: "high", Pods: 1}}},
	}
	if diff := cmp.Diff(namespaces, r.Namespaces); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
}

func TestBudgetsThatDoNotHold(t *testing.T) {
	app := func(name string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	}
	number, percent := ptr(intstr.FromInt32(2)), ptr(intstr.FromString("50%"))
	cases := map[string]struct {
		namespace string
		spec      policyv1.PodDisruptionBudgetSpec
		status    policyv1.PodDisruptionBudgetStatus
		beta      bool
		rule      string
		allowed   int32
		want      string // kinds
	}{
		"all pods are needed": {"batch", policyv1.PodDisruptionBudgetSpec{Selector: app("job"), MinAvailable: number},
			policyv1.PodDisruptionBudgetStatus{}, false, "minAvailable 2", 0, "NeverAllows Overridden"},
		"one may go": {"batch", policyv1.PodDisruptionBudgetSpec{Selector: app("job"), MaxUnavailable: percent},
			policyv1.PodDisruptionBudgetStatus{}, false, "maxUnavailable 50%", 1, "Overridden"},
		"a pod is not ready": {"batch", policyv1.PodDisruptionBudgetSpec{Selector: app("job"), MaxUnavailable: percent},
			policyv1.PodDisruptionBudgetStatus{ExpectedPods: 2, CurrentHealthy: 1, DesiredHealthy: 1}, false,
			"maxUnavailable 50%", 0, "AllowsNone Overridden"},
		"nothing is selected": {"shop", policyv1.PodDisruptionBudgetSpec{Selector: app("job")},
			policyv1.PodDisruptionBudgetStatus{}, false, "minAvailable 1", 0, "SelectsNothing"},
		"everything is selected": {"batch", policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}},
			policyv1.PodDisruptionBudgetStatus{}, false, "minAvailable 1", 1, "Overridden"},
		"an empty selector of policy/v1beta1": {"batch", policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}},
			policyv1.PodDisruptionBudgetStatus{}, true, "minAvailable 1", 0, "SelectsNothing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			c.addBudget(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: "budget"},
				Spec: tc.spec, Status: tc.status}, tc.beta)
			got := c.analyze().Budgets[0]
			if got.Rule != tc.rule || got.Allowed != tc.allowed || kinds(got) != tc.want {
				t.Errorf("got %s, %d allowed, %s; want %s, %d, %s", got.Rule, got.Allowed, kinds(got), tc.rule, tc.allowed,
					tc.want)
			}
		})
	}
}

func kinds(b Budget) string {
	var all []string
	for _, problem := range b.Problems {
		all = append(all, problem.Kind)
	}
	return strings.Join(all, " ")
}

func TestPodsWithSeveralBudgetsOrWithoutAController(t *testing.T) {
	c := &cluster{}
	c.addPod(newPod("shop", "alone", "", "", 0, "1"))
	for _, name := range []string{"first", "second"} {
		c.addBudget(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{},
				MaxUnavailable: ptr(intstr.FromInt32(1))}}, false)
	}
	r := c.analyze()
	if got := kinds(r.Budgets[0]); got != "Overlaps Uncontrolled" ||
		!strings.Contains(r.Budgets[0].Problems[0].Text, "1 pod has second too") {
		t.Errorf("got %+v", r.Budgets[0])
	}
	if !slices.Equal(r.Workloads[0].Budgets, []string{"first", "second"}) {
		t.Errorf("budgets of the pod: %v", r.Workloads[0].Budgets)
	}
}

func TestVictimsInSpiteOfABudget(t *testing.T) {
	c := newCluster()
	c.addBudget(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "batch", Name: "all"},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{},
			MinAvailable: ptr(intstr.FromString("100%"))}}, false)
	r := c.analyze()
	want := Victim{Namespace: "batch", Name: "job-1", Node: "n", Class: "low", Priority: 10, Violated: []string{"all"}}
	if diff := cmp.Diff(want, c.victim("batch", "job-1", "n", r.Budgets)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTypicalRequests(t *testing.T) {
	c := &cluster{}
	c.addPod(newPod("shop", "a", "web", "high", 1, "1"))
	c.addPod(newPod("shop", "b", "web", "high", 1, "3"))
	large := newPod("shop", "c", "web", "high", 1, "40")
	large.Spec.Containers[0].Resources.Requests["example.com/gpu"] = resource.MustParse("8")
	c.addPod(large)
	resized := newPod("shop", "d", "web", "high", 1, "1") // to 1 CPU, which its node has not done yet
	resized.Spec.Containers[0].Name = "c"
	resized.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", AllocatedResources: corev1.ResourceList{
		"cpu": resource.MustParse("4")}, Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{
		"cpu": resource.MustParse("4")}}}}
	c.addPod(resized)
	for class, want := range map[string]int{"high": 4, "unused": 0} {
		requests, pods := c.requests(class)
		cpu := requests[corev1.ResourceCPU]
		if pods != want || cpu.String() != "4" || len(requests) != 1 {
			t.Errorf("class %s: %d pods, %v", class, pods, requests)
		}
	}
}
