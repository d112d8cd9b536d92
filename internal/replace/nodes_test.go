package replace

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
)

// mirror returns the static pod of a node's scheduler.
func mirror(node, image, replacement string, ready bool) corev1.Pod {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-scheduler-" + node,
			Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"}},
		Spec: corev1.PodSpec{NodeName: node,
			Containers: []corev1.Container{{Name: schedulerContainer, Image: image,
				Command: []string{"kube-scheduler", "--v=2"}}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: schedulerContainer, Ready: ready}}},
	}
	if replacement != "" {
		pod.Annotations[staticpod.AnnotationReplacement] = replacement
	}
	return pod
}

func TestPlanOfAllNodesHasTheLeaderLastAndWhatIsDone(t *testing.T) {
	const old, next = "registry.example.com/kube-scheduler:v1", "localhost/new:v1"
	nodes := []inspect.ControlPlaneNode{
		{Name: "cp-1", Ready: true, Names: []string{"cp-1", "10.0.0.1"}}, {Name: "cp-2", Ready: true,
			Names: []string{"cp-2", "10.0.0.2"}}, {Name: "cp-3"},
	}
	programs := []string{"kube-scheduler"}
	for name, c := range map[string]struct {
		pods   []corev1.Pod
		leader string
		goal   Goal
		want   []NodePlan
	}{
		"nothing is done": {
			pods: []corev1.Pod{mirror("cp-1", old, "", true), mirror("cp-2", old, "", true),
				mirror("cp-3", old, "", false)}, leader: "cp-1",
			goal: Goal{Image: next, Command: "do"},
			want: []NodePlan{
				{Node: "cp-2", Ready: true, SchedulerReady: true, Image: old, Command: "do --node cp-2", Programs: programs},
				{Node: "cp-3", Image: old, Command: "do --node cp-3", Programs: programs},
				{Node: "cp-1", Ready: true, SchedulerReady: true, Leads: true, Image: old, Command: "do --node cp-1",
					Programs: programs},
			},
		},
		"one is done, one has another image, one no scheduler": {
			pods: []corev1.Pod{mirror("cp-1", next, "a", true), mirror("cp-2", old, "b", true)}, leader: "cp-3",
			goal: Goal{Image: next, Command: "do"},
			want: []NodePlan{
				{Node: "cp-1", Ready: true, SchedulerReady: true, Image: next, Replacement: "a", Done: true,
					Command: "do --node cp-1", Programs: programs},
				{Node: "cp-2", Ready: true, SchedulerReady: true, Image: old, Replacement: "b", Command: "do --node cp-2",
					Programs: programs},
				{Node: "cp-3", Leads: true, Command: "do --node cp-3"},
			},
		},
		"restored": {
			pods: []corev1.Pod{mirror("cp-1", next, "a", true), mirror("cp-2", old, "", true), mirror("cp-3", old, "", true)},
			goal: Goal{Restored: true, Command: "undo"},
			want: []NodePlan{
				{Node: "cp-1", Ready: true, SchedulerReady: true, Image: next, Replacement: "a", Command: "undo",
					Programs: programs},
				{Node: "cp-2", Ready: true, SchedulerReady: true, Image: old, Done: true, Command: "undo", Programs: programs},
				{Node: "cp-3", SchedulerReady: true, Image: old, Done: true, Command: "undo", Programs: programs},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, planNodes(nodes, c.pods, c.leader, c.goal)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRunThroughAllNodesIsRefusedWhileANodeCannotBeReached(t *testing.T) {
	good := NodePlan{Node: "cp-1", Ready: true, Image: "x"}
	for name, c := range map[string]struct {
		goal Goal
		last NodePlan
		want string
	}{
		"all are ready": {last: NodePlan{Node: "cp-2", Ready: true, Image: "x"}},
		"not ready":     {last: NodePlan{Node: "cp-2", Image: "x"}, want: "node cp-2 is not ready"},
		"no scheduler":  {last: NodePlan{Node: "cp-2", Ready: true}, want: "node cp-2 shows no static pod"},
		"to restore":    {goal: Goal{Restored: true}, last: NodePlan{Node: "cp-2", Ready: true}},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.goal.Check([]NodePlan{good, c.last})
			if c.want == "" && err != nil || c.want != "" &&
				(err == nil || !strings.Contains(err.Error(), c.want) || len(problem.Hints(err)) == 0) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A pod has exactly these directories of its node.
func TestDirectoriesOfANode(t *testing.T) {
	for name, want := range map[string][]string{
		"kubeadm": {"/etc/kubernetes", "/var/lib/pmk-sched"},
		"pmk":     {"/etc/pf9", "/var/lib/pmk-sched"},
	} {
		layout, ok := inspect.LayoutNamed(name)
		if !ok {
			t.Fatalf("no layout %s", name)
		}
		if diff := cmp.Diff(want, Directories(layout)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The machines of several control-plane nodes may have one host name, which is the name of one of
// the nodes: the address of the machine decides.
func TestThisNodeIsFoundByItsAddressBeforeItsHostName(t *testing.T) {
	info := &inspect.Info{ControlPlane: inspect.ControlPlane{Nodes: []inspect.ControlPlaneNode{
		{Name: "cp-1", Address: "10.0.0.1"}, {Name: "cp-2", Address: "10.0.0.2"}, {Name: "cp-3", Address: "10.0.0.3"},
	}}}
	for _, tc := range []struct {
		names []string
		want  string
	}{
		{[]string{"cp-2"}, "cp-2"},
		{[]string{"elsewhere", "10.0.0.2"}, "cp-2"},
		{[]string{"cp-3", "10.0.0.1"}, "cp-1"},
		{[]string{"cp-1", "10.0.0.3"}, "cp-3"},
	} {
		if got, err := FindNode(info, "", tc.names); err != nil || got != tc.want {
			t.Errorf("%q: got %q, %v; want %q", tc.names, got, err, tc.want)
		}
	}
}

// Each kind of cluster has its own way to change the default scheduler, which the error names.
func TestKindsThatCannotBeReplacedAreRefusedWithTheirOwnWay(t *testing.T) {
	pod := []inspect.SchedulerPod{{Namespace: "kube-system", Name: "kube-scheduler-n"}}
	for name, tc := range map[string]struct {
		info       inspect.Info
		want, hint string
	}{
		"kubeadm":    {info: inspect.Info{Layout: "kubeadm"}},
		"PMK":        {info: inspect.Info{Layout: "pmk"}},
		"kOps":       {inspect.Info{Layout: "kops"}, "kops cannot be replaced", "spec.kubeScheduler"},
		"RKE1":       {inspect.Info{Layout: "rke1"}, "container of Docker", "services.scheduler"},
		"Talos":      {inspect.Info{Layout: "talos"}, "talos cannot be replaced", "machine configuration"},
		"OpenShift":  {inspect.Info{Layout: "openshift"}, "operator", "oc edit scheduler cluster"},
		"aks-engine": {inspect.Info{Layout: "aks-engine"}, "aks-engine cannot be replaced", "schedulerConfig"},
		"k3s":        {inspect.Info{Layout: "k3s"}, "not a static pod", "--disable-scheduler"},
		"hosted":     {inspect.Info{Layout: inspect.LayoutManaged}, "no nodes in the cluster", "pmk-sched deploy"},
		"an unknown static pod": {inspect.Info{Layout: inspect.LayoutUnknown, Scheduler: inspect.Scheduler{Pods: pod}},
			"replace Pod/kube-system/kube-scheduler-n", "pmk-sched deploy"},
		"nothing is known": {inspect.Info{Layout: inspect.LayoutUnknown}, "not a control-plane node of a known layout",
			"as root on a control-plane node"},
	} {
		t.Run(name, func(t *testing.T) {
			layout, err := FindLayout(&tc.info)
			if tc.want == "" {
				if err != nil || layout.Name != tc.info.Layout {
					t.Errorf("got %s, %v", layout.Name, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) ||
				!strings.Contains(strings.Join(problem.Hints(err), "; "), tc.hint) {
				t.Errorf("got %v, hints %q", err, problem.Hints(err))
			}
		})
	}
}
