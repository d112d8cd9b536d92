//go:build linux

package schedulers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/cluster/explain"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// second is the scheduler of the pods, withExtender one whose extender does not answer, and
// withPlugin one whose plugin rejects every node.
const (
	second       = "second"
	withExtender = "with-extender"
	withPlugin   = "with-plugin"
)

// scene is a control plane with its schedulers.
type scene struct {
	*controlplane.Plane
	deadExtender string
}

// blocking is the configuration of the scheduler withPlugin.
const blocking = `apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: ` + withPlugin + `
  plugins: {filter: {enabled: [{name: BlockAll}]}}
`

// pending is a reason why a pod stays pending. set creates the reason in a namespace and on two
// nodes of 16 CPUs that no other test uses.
type pending struct {
	set func(ctx context.Context, t *testing.T, s scene, group string, pod *corev1.Pod)
	// want is the first finding: By and Text are parts, and Nodes is 2, 0, or others if the
	// scheduler counts nodes of other tests too.
	want explain.Finding
}

// others is the number of nodes of a finding that has two nodes or more.
const others = -1

func TestExplain(t *testing.T) {
	server.Clear(t) // the zones of other tests' nodes would count
	for _, release := range apiserver.Releases() {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			s := start(t, release)
			for name, c := range causes(s.Release.Minor) {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					s.check(t, "explain-"+name, c)
				})
			}
			t.Run("placed", func(t *testing.T) {
				t.Parallel()
				s.checkPlaced(t)
			})
			t.Run("evicted", func(t *testing.T) {
				t.Parallel()
				s.checkEvicted(t)
			})
		})
	}
}

func start(t *testing.T, release string) scene {
	t.Helper()
	s := scene{planeOf(t, release), "http://" + controlplane.FreeAddress(t)}
	s.NewScheduler(t, controlplane.Scheduler{Name: second}).Start()
	ignorable := false
	s.NewScheduler(t, controlplane.Scheduler{Name: withExtender, Extenders: []profiles.Extender{{
		URLPrefix: s.deadExtender, FilterVerb: "filter", Ignorable: &ignorable,
	}}}).Start()
	binary, err := controlplane.Build(t.Context(),
		build.Options{Release: s.Release, Plugins: []plugins.Plugin{{Builtin: "blockall"}}, Sources: pmksched.Sources})
	if err != nil {
		t.Fatal(err)
	}
	s.NewScheduler(t, controlplane.Scheduler{Name: withPlugin, Plugins: []string{"BlockAll"}, Binary: binary,
		Source: []byte(blocking)}).Start()
	s.install(t)
	return s
}

// install creates the objects by which pmk-sched finds the scheduler withPlugin, as if its replica
// were ready.
func (s scene) install(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	rendered, err := profiles.Render(profiles.Request{Release: s.Release, SchedulerName: withPlugin,
		Kubeconfig: s.Kubeconfig, Plugins: []string{"BlockAll"}, Source: []byte(blocking)})
	if err != nil {
		t.Fatal(err)
	}
	configuration := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: withPlugin},
		Data: map[string]string{withPlugin + ".yaml": string(rendered.YAML)}}
	if _, err := s.Kube.CoreV1().ConfigMaps(metav1.NamespaceSystem).Create(ctx, configuration,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	labels := ownership.Labels(withPlugin)
	labels[ownership.LabelName], labels[ownership.LabelRelease] = ownership.Scheduler, s.Release.String()
	pod := controlplane.Pod(withPlugin, "none", withPlugin)
	pod.Labels = labels
	pod.Spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: withPlugin}},
	}}}
	deployments := s.Kube.AppsV1().Deployments(metav1.NamespaceSystem)
	made, err := deployments.Create(ctx,
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: withPlugin, Labels: labels}, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta,
				Spec: pod.Spec},
		}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Status.Replicas, made.Status.ReadyReplicas = 1, 1
	if _, err := deployments.UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// check creates the pod of a cause and waits until `explain` names the cause.
func (s scene) check(t *testing.T, group string, c pending) {
	t.Helper()
	ctx := run.Context(t)
	s.Namespace(ctx, t, group)
	s.Nodes(ctx, t, group, group+"-1", group+"-2")
	s.ready(ctx, t, group)
	pod := controlplane.Pod(second, group, "web-0")
	c.set(ctx, t, s, group, pod)
	s.Create(ctx, t, group, pod)
	var got *explain.Report
	run.Eventually(t, "the cause is "+string(c.want.Cause), func(context.Context) (bool, string) {
		report := run.Decode[explain.Report](t,
			run.PMKSched(t, "--kubeconfig", s.Kubeconfig, "explain", "-n", group, "-o", "json", pod.Name).OK(t).Stdout)
		got = &report
		return report.State == explain.Pending && len(report.Findings) > 0 && report.Findings[0].Cause == c.want.Cause,
			fmt.Sprintf("%+v", report)
	})
	first := got.Findings[0]
	if first.Resource != c.want.Resource {
		t.Errorf("got resource %q, want %q; message %q", first.Resource, c.want.Resource, got.Message)
	}
	if !strings.Contains(first.By, c.want.By) {
		t.Errorf("by %q lacks %q; message %q", first.By, c.want.By, got.Message)
	}
	if first.Nodes != c.want.Nodes && (c.want.Nodes != others || first.Nodes < 2) {
		t.Errorf("got %d nodes, want %d; message %q", first.Nodes, c.want.Nodes, got.Message)
	}
	if !strings.Contains(first.Text, c.want.Text) {
		t.Errorf("text %q lacks %q", first.Text, c.want.Text)
	}
	for _, f := range got.Findings[1:] {
		if !c.also(f, group) {
			t.Errorf("a wrong cause as well: %+v; message %q", f, got.Message)
		}
	}
	table := run.PMKSched(t, "--kubeconfig", s.Kubeconfig, "explain", "-n", group, pod.Name).OK(t).Stdout
	if !strings.Contains(table, string(c.want.Cause)) || !strings.Contains(table, "pod "+group+"/web-0 is pending") {
		t.Errorf("table:\n%s", table)
	}
}

// also reports whether a finding after the first one is right: it says why no pod is preempted, or
// is about the nodes of other tests, which the scheduler counts as excluded by the pod's node
// selector. Findings about the nodes of the test have their names.
func (p pending) also(f explain.Finding, group string) bool {
	ofTest := slices.ContainsFunc(f.Examples, func(node string) bool { return strings.HasPrefix(node, group+"-") })
	return f.Cause == explain.Priority || !ofTest || p.want.Cause == explain.Preempting && f.Cause == explain.Resource
}

// ready removes the taint of nodes that are not ready: no controller does. Tests that need it set
// it again.
func (s scene) ready(ctx context.Context, t *testing.T, group string) {
	t.Helper()
	s.changeNodes(ctx, t, group, func(n *corev1.Node) { n.Spec.Taints = nil })
}

// changeNodes changes the nodes of a group.
func (s scene) changeNodes(ctx context.Context, t *testing.T, group string, change func(*corev1.Node)) {
	t.Helper()
	for _, name := range []string{group + "-1", group + "-2"} {
		run.Eventually(t, "node "+name+" is changed", func(ctx context.Context) (bool, string) {
			node, err := s.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			if err == nil {
				change(node)
				_, err = s.Kube.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
			}
			return err == nil, fmt.Sprint(err)
		})
	}
}

// checkPlaced explains a pod that the scheduler has placed, and one that does not exist.
func (s scene) checkPlaced(t *testing.T) {
	t.Helper()
	const group = "explain-placed"
	ctx := run.Context(t)
	s.Namespace(ctx, t, group)
	s.Nodes(ctx, t, group, group+"-1")
	node := s.Place(ctx, t, group, controlplane.Pod(second, group, "web-0"))
	run.Eventually(t, "the event of the binding is there", func(context.Context) (bool, string) {
		report := run.Decode[explain.Report](t,
			run.PMKSched(t, "--kubeconfig", s.Kubeconfig, "explain", "-n", group, "-o", "json", "web-0").OK(t).Stdout)
		return report.State == explain.Bound && report.Node == node &&
			strings.Contains(report.Summary, "scheduler second placed it on node "+node), fmt.Sprintf("%+v", report)
	})
	missing := run.PMKSched(t, "--kubeconfig", s.Kubeconfig, "explain", "-n", group, "gone")
	if missing.Code != 2 || !strings.Contains(missing.Stderr, "pod gone does not exist in namespace "+group) {
		t.Errorf("a pod that does not exist: %s", missing)
	}
	s.exceedQuota(ctx, t, group)
	report := run.Decode[explain.Report](t,
		run.PMKSched(t, "--kubeconfig", s.Kubeconfig, "explain", "-n", group, "-o", "json", "web").OK(t).Stdout)
	if report.State != explain.Missing || len(report.Findings) != 1 {
		t.Fatalf("a workload without pods: %+v", report)
	}
	if f := report.Findings[0]; f.Cause != explain.Quota || !strings.Contains(f.Text, "exceeded quota: small") {
		t.Errorf("a workload that exceeds a quota: %+v", f)
	}
}

// exceedQuota creates a quota, and the event of a ReplicaSet that exceeds it:
// kube-controller-manager writes the error of the API server into it.
func (s scene) exceedQuota(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	hard := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	used := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	quotas := s.Kube.CoreV1().ResourceQuotas(namespace)
	quota, err := quotas.Create(ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "small"}, Spec: corev1.ResourceQuotaSpec{Hard: hard},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: used} // no controller counts
	if _, err := quotas.UpdateStatus(ctx, quota, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := controlplane.Pod(second, namespace, "web-5d4f-x")
	request(pod, corev1.ResourceCPU, "2")
	var refused error
	run.Eventually(t, "the API server refuses a pod that exceeds the quota", func(ctx context.Context) (bool, string) {
		_, refused = s.Kube.CoreV1().Pods(namespace).Create(ctx, pod,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsForbidden(refused) && strings.Contains(refused.Error(), "exceeded"), fmt.Sprint(refused)
	})
	_, err = s.Kube.CoreV1().Events(namespace).Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "refused"}, Type: corev1.EventTypeWarning, Reason: "FailedCreate",
		LastTimestamp: metav1.Now(),
		InvolvedObject: corev1.ObjectReference{Kind: "ReplicaSet", APIVersion: "apps/v1", Namespace: namespace,
			Name: "web-5d4f"},
		Message: "Error creating: " + refused.Error(),
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// request makes quantity of the resource the only request of the pod.
func request(pod *corev1.Pod, name corev1.ResourceName, quantity string) {
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{name: resource.MustParse(quantity)}
	pod.Spec.Containers[0].Resources.Limits = nil
	if strings.Contains(string(name), "/") { // extended resources need a limit
		pod.Spec.Containers[0].Resources.Limits = pod.Spec.Containers[0].Resources.Requests
	}
}

// running places pods on both nodes of a group.
func (s scene) running(ctx context.Context, t *testing.T, group string, change func(*corev1.Pod)) {
	t.Helper()
	for _, name := range []string{"a", "b"} {
		pod := controlplane.Pod(second, group, name)
		pod.Labels = map[string]string{"app": "other"}
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: apart("other", corev1.LabelHostname)}
		change(pod)
		s.Place(ctx, t, group, pod)
	}
}

// apart is anti-affinity to the pods of an app.
func apart(app, key string) *corev1.PodAntiAffinity {
	return &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: together(app,
		key).RequiredDuringSchedulingIgnoredDuringExecution}
}

func together(app, key string) *corev1.PodAffinity {
	return &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, TopologyKey: key},
	}}
}

// taintAll taints the nodes of a group, and makes the pod tolerate nothing.
func (s scene) taintAll(ctx context.Context, t *testing.T, group string, pod *corev1.Pod, taint corev1.Taint) {
	t.Helper()
	pod.Spec.Tolerations = nil
	s.changeNodes(ctx, t, group, func(n *corev1.Node) { n.Spec.Taints = slices.Clone([]corev1.Taint{taint}) })
}
