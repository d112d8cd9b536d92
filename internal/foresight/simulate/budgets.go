package simulate

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/kubelet"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// budgets are a run's PodDisruptionBudgets, and the pods and controllers in their namespaces.
type budgets struct {
	// namespaces are the namespaces with budgets.
	namespaces map[string]bool
	all        []budget
	pods       []budgetPod
	// replicas are the controllers' replicas, and owners the controllers that own controllers, by
	// namespace, kind and name.
	replicas map[string]int
	owners   map[string]string
}

type budget struct {
	*policyv1.PodDisruptionBudget
	selector labels.Selector
	// given are the status fields that the snapshot has.
	given map[string]any
}

// budgetPod is a pod that has not ended.
type budgetPod struct {
	namespace, owner string
	labels           labels.Set
	bound            bool
}

// add adds a snapshot object.
func (b *budgets) add(kind *snapshot.Kind, version string, o map[string]any) error {
	metadata := &metav1.PartialObjectMetadata{}
	switch kind.GroupResource() {
	case "poddisruptionbudgets.policy":
		return b.addBudget(version, o)
	case "pods":
		pod := &corev1.Pod{}
		if err := snapshot.Convert(o, pod); err != nil {
			return err
		}
		if b.namespaces[pod.Namespace] && !report.IsFinished(pod) && pod.DeletionTimestamp == nil {
			b.pods = append(b.pods, budgetPod{namespace: pod.Namespace, owner: ownerOf(&pod.ObjectMeta), labels: pod.Labels,
				bound: pod.Spec.NodeName != ""})
		}
	case "replicasets.apps", "deployments.apps", "statefulsets.apps", "replicationcontrollers":
		if err := snapshot.Convert(o, metadata); err != nil {
			return err
		}
		if !b.namespaces[metadata.Namespace] {
			return nil
		}
		key := controllerKey(metadata.Namespace, kind.Name, metadata.Name)
		b.owners[key] = ownerOf(&metadata.ObjectMeta)
		var spec struct {
			Spec struct {
				Replicas *int `json:"replicas"`
			} `json:"spec"`
		}
		if err := snapshot.Convert(o, &spec); err != nil {
			return err
		}
		b.replicas[key] = 1 // by default
		if spec.Spec.Replicas != nil {
			b.replicas[key] = *spec.Spec.Replicas
		}
	}
	return nil
}

func (b *budgets) addBudget(version string, o map[string]any) error {
	found := budget{PodDisruptionBudget: &policyv1.PodDisruptionBudget{}}
	if err := snapshot.Convert(o, found.PodDisruptionBudget); err != nil {
		return err
	}
	var err error
	if found.selector, err = metav1.LabelSelectorAsSelector(found.Spec.Selector); err != nil {
		return nil //nolint:nilerr // the API server refuses it
	}
	if version == "v1beta1" && found.selector.Empty() {
		found.selector = labels.Nothing()
	}
	found.given, _ = o["status"].(map[string]any)
	b.all = append(b.all, found)
	return nil
}

func controllerKey(namespace, kind, name string) string { return namespace + "/" + kind + "/" + name }

func ownerOf(o *metav1.ObjectMeta) string {
	owner := metav1.GetControllerOf(o)
	if owner == nil {
		return ""
	}
	return controllerKey(o.Namespace, owner.Kind, owner.Name)
}

// list returns the budgets as they were in the snapshot.
func (b *budgets) list() []kubelet.Budget {
	var all []kubelet.Budget
	for i := range b.all {
		found := &b.all[i]
		k := kubelet.Budget{Namespace: found.Namespace, Name: found.Name, Selector: found.selector, Rule: found.Spec}
		var pods []budgetPod
		for _, pod := range b.pods {
			if pod.namespace == found.Namespace && found.selector.Matches(pod.labels) {
				pods = append(pods, pod)
				if pod.bound {
					k.Bound++
				}
			}
		}
		k.Health = kubelet.NewHealth(&found.Spec, k.Bound, b.expected(found, pods))
		s := found.Status
		switch {
		case found.given["expectedPods"] != nil || found.given["currentHealthy"] != nil:
			k.Stored = true
			k.Health = kubelet.Health{Allowed: int(s.DisruptionsAllowed), Healthy: int(s.CurrentHealthy),
				Desired: int(s.DesiredHealthy), Expected: int(s.ExpectedPods)}
		case found.given["disruptionsAllowed"] != nil: // all that a manifest says
			k.Health.Allowed = int(s.DisruptionsAllowed)
			k.Health.Healthy, k.Health.Desired = k.Bound, max(k.Bound-k.Health.Allowed, 0)
			k.Health.Expected = max(k.Health.Expected, k.Bound)
		}
		all = append(all, k)
	}
	return all
}

// expected returns the number of pods that a budget without a status expects: its pods, or, if its
// rule needs the scale, their controllers' replicas (getExpectedScale in
// pkg/controller/disruption/disruption.go). Pods without a controller do not count then.
func (b *budgets) expected(of *budget, pods []budgetPod) int {
	if !kubelet.NeedsScale(&of.Spec) {
		return len(pods)
	}
	running := map[string]int{} // pods of controllers
	for _, pod := range pods {
		if pod.owner == "" {
			continue
		}
		controller := pod.owner
		if above := b.owners[controller]; above != "" {
			controller = above // a Deployment
		}
		running[controller]++
	}
	expected := 0
	for controller, pods := range running {
		if replicas, known := b.replicas[controller]; known {
			pods = replicas
		}
		expected += pods
	}
	return expected
}
