//go:build linux

package plugins

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// behavior is a test of a bundled plugin in a real scheduler.
type behavior struct {
	name string
	test func(*testing.T, subject)
}

// everyday are the behaviors that `make test` checks.
var everyday = []behavior{
	{"a gang of four is bound when there is room for all four", gangOfFour},
	{"shares of GPUs are placed on devices", sharesOfGPUs},
	{"pods go where they cost least", leastCost},
	{"a pod held by LoadAware is bound when the load falls", heldByLoad},
	{"schedulers do not evict each other's pods in turn", preemptionInTurn},
	{"limits hold under random operations", limitsHold},
}

// TestBundledPlugins runs all behaviors of a release on one API server, one after the other: events
// of the pods and nodes of one behavior would requeue pods of another one.
func TestBundledPlugins(t *testing.T) {
	for _, release := range releases() {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			s := newSubject(t, release)
			for _, b := range behaviors() {
				t.Run(b.name, func(t *testing.T) { b.test(t, s) })
			}
		})
	}
}

// subject is an API server, and the kube-scheduler of its release with the plugins of these tests.
type subject struct {
	*controlplane.Plane
	built *build.Result
}

// newSubject takes the API server of the package if it is of the release.
func newSubject(t *testing.T, release string) subject {
	t.Helper()
	if release != apiserver.Release {
		return withScheduler(t, controlplane.StartAPIServer(t, release))
	}
	return withScheduler(t, controlplane.Of(t, server, release))
}

func withScheduler(t *testing.T, plane *controlplane.Plane) subject {
	t.Helper()
	cache, err := run.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	compiledIn := []plugins.Plugin{{Dir: "testdata/panics"}}
	for _, name := range []string{"loadaware", "coscheduling", "elasticquota", "gpupacking", "numaaware", "networkaware",
		"costaware", "otherschedulers"} {
		compiledIn = append(compiledIn, plugins.Plugin{Builtin: name})
	}
	built, err := build.Run(t.Context(), build.Options{
		Release: plane.Release, Plugins: compiledIn, Sources: pmksched.Sources,
		Environment: build.Environment{CacheDir: cache, Env: os.Environ()},
	})
	if err != nil {
		t.Fatal(err)
	}
	return subject{plane, built}
}

// cluster is a scheduler with one plugin, and the namespace and the nodes that have its name.
type cluster struct {
	*controlplane.Plane
	scheduler     *controlplane.Process
	name, metrics string
}

// rulesOf returns the permissions that a plugin declares.
type rulesOf func(scheduler.Arguments) ([]rbacv1.PolicyRule, error)

// enabled is a plugin of a scheduler, with its arguments and the rules that it declares for them.
type enabled struct {
	profiles.Plugin
	rules rulesOf
}

// start starts a scheduler with the permissions of system:kube-scheduler and the rules of the
// plugin. Everything ends with the test.
func (s subject) start(t *testing.T, name string, plugin profiles.Plugin, rules rulesOf) *cluster {
	t.Helper()
	x := s.prepare(t, name, plugin, rules)
	x.scheduler.Start()
	return x
}

// prepare is start without starting the scheduler.
func (s subject) prepare(t *testing.T, name string, plugin profiles.Plugin, rules rulesOf) *cluster {
	t.Helper()
	return s.prepareAll(t, name, nil, enabled{plugin, rules})
}

// prepareAll is prepare with several plugins in one profile, and with the rest of the scheduler's
// configuration, which may be nil.
func (s subject) prepareAll(t *testing.T, name string, source []byte, all ...enabled) *cluster {
	t.Helper()
	const user = "system:kube-scheduler"
	x := &cluster{Plane: s.Plane, name: name, metrics: controlplane.FreeAddress(t)}
	x.Namespace(t.Context(), t, name)
	t.Cleanup(func() { x.Clear(t, name) })
	var enable []profiles.Plugin
	var granted []rbacv1.PolicyRule
	for _, plugin := range all {
		if plugin.rules != nil {
			declared, err := plugin.rules(scheduler.NewArguments(plugin.Args))
			if err != nil {
				t.Fatal(err)
			}
			granted = append(granted, declared...)
		}
		i := slices.IndexFunc(s.built.Info.Plugins, func(p plugins.Info) bool { return p.Name == plugin.Name })
		if i < 0 {
			t.Fatalf("the scheduler has no plugin %s", plugin.Name)
		}
		plugin.Points = s.built.Info.Plugins[i].Points
		enable = append(enable, plugin.Plugin)
	}
	if len(granted) > 0 {
		x.grant(t, user, granted)
	}
	binary, ok := s.built.Binary(build.KubeScheduler, build.Host())
	if !ok {
		t.Fatal("no kube-scheduler was built for this machine")
	}
	x.scheduler = s.NewScheduler(t, controlplane.Scheduler{
		Name: name, Binary: binary.Path, Enable: enable, Source: source, User: user,
		Args: controlplane.ServeMetrics(t, x.metrics),
	})
	return x
}

// grant gives a user permissions until the test ends.
func (x *cluster) grant(t *testing.T, user string, rules []rbacv1.PolicyRule) {
	t.Helper()
	rbac := x.Kube.RbacV1()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: x.name}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole",
			Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
	_, err := rbac.ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	if err == nil {
		_, err = rbac.ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rbac.ClusterRoleBindings().Delete(context.WithoutCancel(t.Context()), x.name,
			metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// amounts are quantities by resource.
type amounts map[corev1.ResourceName]string

func (a amounts) list() corev1.ResourceList {
	all := corev1.ResourceList{}
	for name, amount := range a {
		all[name] = resource.MustParse(amount)
	}
	return all
}

// node adds a node, whose name begins with the cluster's, with room for pods and more of some
// resources.
func (x *cluster) node(t *testing.T, name string, room amounts, labels map[string]string) {
	t.Helper()
	x.taintedNode(t, name, room, labels)
	x.untaint(t, name)
}

// taintedNode adds a node with the taint that the API server sets.
func (x *cluster) taintedNode(t *testing.T, name string, room amounts, labels map[string]string) {
	t.Helper()
	name = x.name + "-" + name
	all := map[string]string{controlplane.GroupLabel: x.name, corev1.LabelHostname: name}
	maps.Copy(all, labels)
	whole := amounts{corev1.ResourceCPU: "4", corev1.ResourceMemory: "8Gi", corev1.ResourcePods: "110"}
	maps.Copy(whole, room)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: all},
		Status: corev1.NodeStatus{Capacity: whole.list(), Allocatable: whole.list()}}
	if _, err := x.Kube.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// untaint removes the taints of a node, as the node lifecycle controller does when the kubelet is
// ready.
func (x *cluster) untaint(t *testing.T, name string) {
	t.Helper()
	if _, err := x.Kube.CoreV1().Nodes().Patch(t.Context(), x.name+"-"+name, types.MergePatchType,
		[]byte(`{"spec": {"taints": null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// followsNodes returns when the scheduler has placed a pod on a node that is new. It knows the
// nodes that were added before then: it adds nodes in the order of their events, except for nodes
// that exist when it starts.
func (x *cluster) followsNodes(t *testing.T, name string) {
	t.Helper()
	x.node(t, name, nil, map[string]string{controlplane.GroupLabel: x.name + "-" + name})
	t.Cleanup(func() { x.Clear(t, x.name+"-"+name) })
	pod := x.pod(name, nil)
	pod.Spec.NodeSelector[controlplane.GroupLabel] = x.name + "-" + name
	x.create(t, pod)
	x.awaitBound(t, name)
}

// pod returns a pod for the scheduler and the nodes of the cluster. A deleted one is gone at once.
func (x *cluster) pod(name string, need amounts) *corev1.Pod {
	none := int64(0)
	pod := controlplane.Pod(x.name, x.name, name)
	pod.Spec.Tolerations, pod.Spec.TerminationGracePeriodSeconds = nil, &none
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: need.list(), Limits: need.list()}
	return pod
}

func (x *cluster) create(t *testing.T, pods ...*corev1.Pod) {
	t.Helper()
	x.Create(t.Context(), t, x.name, pods...)
}

func (x *cluster) get(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	pod, err := x.Kube.CoreV1().Pods(x.name).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func (x *cluster) remove(t *testing.T, name string) {
	t.Helper()
	if err := x.Kube.CoreV1().Pods(x.name).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (x *cluster) awaitBound(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		run.Eventually(t, "pod "+name+" is bound", func(context.Context) (bool, string) {
			pod := x.get(t, name)
			return pod.Spec.NodeName != "", message(pod)
		})
	}
}

// nodeOf returns the node of a pod, without the name of the cluster, when the pod is bound.
func (x *cluster) nodeOf(t *testing.T, name string) string {
	t.Helper()
	x.awaitBound(t, name)
	return strings.TrimPrefix(x.get(t, name).Spec.NodeName, x.name+"-")
}

// awaitRejected waits until the scheduler has rejected a pod for a reason.
func (x *cluster) awaitRejected(t *testing.T, name, reason string) {
	t.Helper()
	run.Eventually(t, "pod "+name+" is rejected because of "+reason, func(context.Context) (bool, string) {
		pod := x.get(t, name)
		return pod.Spec.NodeName == "" && strings.Contains(message(pod), reason), pod.Spec.NodeName + message(pod)
	})
}

// message is why the scheduler has not bound a pod.
func message(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}

// wakes checks that an event has pods bound that the scheduler has put aside: only an event or the
// flush makes it try them again.
func (x *cluster) wakes(t *testing.T, what string, event func(), pods ...string) {
	t.Helper()
	x.awaitAside(t, len(pods))
	x.withoutFlush(t, what, func() {
		event()
		x.awaitBound(t, pods...)
	})
}

// awaitAside waits until the scheduler has put aside a number of pods and has no other pending
// pods.
func (x *cluster) awaitAside(t *testing.T, pods int) {
	t.Helper()
	run.Eventually(t, "all pods are put aside", func(ctx context.Context) (bool, string) {
		metrics, err := controlplane.ReadMetrics(ctx, x.metrics)
		if err != nil {
			return false, err.Error()
		}
		queues := metrics.By(t, "scheduler_pending_pods", "queue")
		return queues["unschedulable"] == float64(pods) && queues["active"]+queues["backoff"] == 0, fmt.Sprint(queues)
	})
}

// withoutFlush checks that no pod was requeued by the periodic flush while do ran. The duration of
// do is only logged, since it depends on the machine.
func (x *cluster) withoutFlush(t *testing.T, what string, do func()) {
	t.Helper()
	before, began := x.moved(t), time.Now()
	do()
	took, moves := time.Since(began), controlplane.Increase(before, x.moved(t))
	if moves[controlplane.Flushed] > 0 {
		t.Errorf("%s: pods were tried again only because of the time: %v", what, moves)
	}
	t.Logf("%s: bound after %.1f s; pods were moved by %v", what, took.Seconds(), moves)
}

// moved returns how many pods each event has moved between the scheduler's queues.
func (x *cluster) moved(t *testing.T) (events map[string]float64) {
	t.Helper()
	run.Eventually(t, "the scheduler has counted pods", func(ctx context.Context) (bool, string) {
		metrics, err := controlplane.ReadMetrics(ctx, x.metrics)
		events = metrics.By(t, controlplane.MovedPods, "event")
		return len(events) > 0, fmt.Sprint(err)
	})
	return events
}
