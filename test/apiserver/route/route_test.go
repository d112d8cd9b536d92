//go:build linux

// Package route tests routes on real API servers: which pods get the scheduler, by a policy and by
// the webhook.
package route

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/routes"
)

// releases are those of all such tests, and if they are not only one, the first that serves
// policies in a stable version.
func releases() []string {
	all := apiserver.Releases()
	if len(all) > 1 {
		all = append(all, "v1.36.3")
	}
	return all
}

// mechanisms returns how a release can route pods: the API of its policies, and "" for the webhook.
func mechanisms(p *controlplane.Plane) []string {
	if api := p.Release.Rules().MutatingPolicyAPI; api != "" {
		return []string{api, ""}
	}
	return []string{""}
}

const scheduler, unrouted, gpu = "gpu-scheduler", "default-scheduler", "nvidia.com/gpu"

// rule selects the pods with a GPU and a label in two namespaces with a label.
func rule() route.Rule {
	return route.Rule{Scheduler: scheduler, Namespace: "schedulers", Route: v1alpha1.Route{
		Namespaces:        []string{"ml", "batch", "unlabeled", "schedulers"},
		NamespaceSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]string{"team": "a"}},
		PodSelector: &v1alpha1.LabelSelector{MatchExpressions: []v1alpha1.LabelRequirement{
			{Key: "tier", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"db"}}}},
		Resources: []string{gpu, "amd.com/gpu"},
	}}
}

// cases are changes of a pod in namespace ml with a GPU, with the scheduler that the pod then gets.
var cases = map[string]struct {
	change func(*corev1.Pod)
	want   string
}{
	"selected":             {func(*corev1.Pod) {}, scheduler},
	"names the default":    {func(p *corev1.Pod) { p.Spec.SchedulerName = unrouted }, scheduler},
	"another namespace":    {func(p *corev1.Pod) { p.Namespace = "batch" }, scheduler},
	"with annotations":     {func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }, scheduler},
	"of a ReplicaSet":      {func(p *corev1.Pod) { own(p, "ReplicaSet", true) }, scheduler},
	"cited by a DaemonSet": {func(p *corev1.Pod) { own(p, "DaemonSet", false) }, scheduler},
	"an init container's GPU": {func(p *corev1.Pod) {
		p.Spec.InitContainers, p.Spec.Containers = containers("amd.com/gpu"), containers("cpu")
		p.Spec.InitContainers[0].Name = "init"
	}, scheduler},
	"names a scheduler": {func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }, "other"},
	"has a node":        {func(p *corev1.Pod) { p.Spec.NodeName = "n" }, unrouted},
	"of a DaemonSet":    {func(p *corev1.Pod) { own(p, "DaemonSet", true) }, unrouted},
	"without a GPU":     {func(p *corev1.Pod) { p.Spec.Containers = containers("cpu") }, unrouted},
	"without requests":  {func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = nil }, scheduler},
	"without resources": {func(p *corev1.Pod) { p.Spec.Containers[0].Resources = corev1.ResourceRequirements{} },
		unrouted},
	"one of pmk-sched's": {func(p *corev1.Pod) { p.Labels = map[string]string{"app.kubernetes.io/name": "pmk-sched-admission"} },
		unrouted},
	"other labels":            {func(p *corev1.Pod) { p.Labels = map[string]string{"tier": "db"} }, unrouted},
	"namespace not named":     {func(p *corev1.Pod) { p.Namespace = "web" }, unrouted},
	"namespace without label": {func(p *corev1.Pod) { p.Namespace = "unlabeled" }, unrouted},
	"kube-system":             {func(p *corev1.Pod) { p.Namespace = "kube-system" }, unrouted},
	"the scheduler's own":     {func(p *corev1.Pod) { p.Namespace = "schedulers" }, unrouted},
}

func own(p *corev1.Pod, kind string, controls bool) {
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "o", UID: types.UID("u"),
		Controller: &controls}}
}

func containers(of corev1.ResourceName) []corev1.Container {
	amounts := corev1.ResourceList{of: resource.MustParse("1")}
	return []corev1.Container{{Name: "c", Image: "i",
		Resources: corev1.ResourceRequirements{Requests: amounts, Limits: amounts}}}
}

func TestRouteSelectsThePodsOfItsRuleOnly(t *testing.T) {
	for _, release := range releases() {
		t.Run(release, func(t *testing.T) {
			p := controlplane.StartAPIServer(t, release, routes.Flags(release)...)
			for name, labels := range map[string]map[string]string{"ml": {"team": "a"}, "batch": {"team": "a"},
				"web": {"team": "a"}, "schedulers": {"team": "a"}, "unlabeled": nil} {
				ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
				if _, err := p.Kube.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			for _, api := range mechanisms(p) {
				t.Run("policy "+api, func(t *testing.T) {
					t.Run("all", func(t *testing.T) { checkRoute(t, p, api) })
					t.Run("a share", func(t *testing.T) { checkShare(t, p, api) })
				})
			}
		})
	}
}

func checkRoute(t *testing.T, p *controlplane.Plane, api string) {
	routes.Register(t, p.Config(), route.Registration{Rule: rule(), Release: p.Release, PolicyAPI: api})
	selected := pod(cases["selected"].change)
	for until := time.Now().Add(20 * time.Second); create(t, p, selected).Spec.SchedulerName != scheduler; {
		if time.Now().After(until) {
			t.Fatal("the route does not act")
		}
		time.Sleep(100 * time.Millisecond)
	}
	for name, tc := range cases {
		made := create(t, p, pod(tc.change))
		if made.Spec.SchedulerName != tc.want {
			t.Errorf("%s: scheduler %s, want %s", name, made.Spec.SchedulerName, tc.want)
		}
		if routed := made.Annotations[route.Annotation]; routed != strings.TrimPrefix(tc.want, unrouted) &&
			tc.want != "other" {
			t.Errorf("%s: routed to %q", name, routed)
		}
	}
}

// checkShare checks which pods a share of half of the controllers has.
func checkShare(t *testing.T, p *controlplane.Plane, api string) {
	half := rule()
	half.Route.Share = new(50)
	routes.Register(t, p.Config(), route.Registration{Rule: half, Release: p.Release, PolicyAPI: api})
	of := func(uid types.UID) *corev1.Pod {
		return pod(func(p *corev1.Pod) {
			own(p, "ReplicaSet", true)
			p.OwnerReferences[0].UID = uid
		})
	}
	for until := time.Now().Add(20 * time.Second); create(t, p, of("0")).Spec.SchedulerName != unrouted ||
		create(t, p, of("00000000")).Spec.SchedulerName != scheduler; {
		if time.Now().After(until) {
			t.Fatal("the route does not act")
		}
		time.Sleep(100 * time.Millisecond)
	}
	for uid, want := range map[types.UID]string{"7fffffff-ffff-4fff-bfff-ffffffffffff": scheduler,
		"80000000-0000-4000-8000-000000000000": unrouted, "7FFFFFFF": unrouted, "!!!!!!!!": unrouted,
		"0000000\u00e9": unrouted, "\x00": unrouted} {
		if got := create(t, p, of(uid)).Spec.SchedulerName; got != want {
			t.Errorf("controller %q: scheduler %s, want %s", uid, got, want)
		}
	}
	if got := create(t, p, pod(func(*corev1.Pod) {})).Spec.SchedulerName; got != unrouted {
		t.Errorf("a pod without a controller gets scheduler %s", got)
	}
	owned := pod(func(p *corev1.Pod) { own(p, "ReplicaSet", false) })
	owned.OwnerReferences[0].UID = "00000000"
	if got := create(t, p, owned).Spec.SchedulerName; got != unrouted {
		t.Errorf("a pod of an owner that is not its controller gets scheduler %s", got)
	}
}

func pod(change func(*corev1.Pod)) *corev1.Pod {
	made := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "p-", Namespace: "ml"},
		Spec: corev1.PodSpec{Containers: containers(gpu)}}
	change(made)
	return made
}

func create(t *testing.T, p *controlplane.Plane, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	made, err := p.Kube.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	return made
}
