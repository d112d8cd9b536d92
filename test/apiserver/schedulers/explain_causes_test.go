//go:build linux

package schedulers

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/explain"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
)

// causes are the causes that a release has.
func causes(minor int) map[string]pending {
	all := map[string]pending{
		"cpu": {func(_ context.Context, _ *testing.T, _ scene, _ string, pod *corev1.Pod) {
			request(pod, corev1.ResourceCPU, "17")
		},
			explain.Finding{Cause: explain.Resource, Resource: "cpu", By: "NodeResourcesFit", Nodes: 2,
				Text: "2 nodes lack 1 CPU"}},
		"memory": {func(_ context.Context, _ *testing.T, _ scene, _ string, pod *corev1.Pod) {
			request(pod, corev1.ResourceMemory, "65Gi")
		}, explain.Finding{Cause: explain.Resource, Resource: "memory", By: "NodeResourcesFit", Nodes: 2,
			Text: "2 nodes lack 1Gi memory"}},
		"device": {func(_ context.Context, _ *testing.T, _ scene, _ string, pod *corev1.Pod) {
			request(pod, "example.com/gpu", "1")
		}, explain.Finding{Cause: explain.Resource, Resource: "example.com/gpu", By: "NodeResourcesFit", Nodes: 2,
			Text: "2 nodes lack 1 example.com/gpu"}},
		"used": {func(ctx context.Context, t *testing.T, s scene, group string, pod *corev1.Pod) {
			s.running(ctx, t, group, func(p *corev1.Pod) { controlplane.Filling(p) })
			controlplane.Filling(pod)
		}, explain.Finding{Cause: explain.Resource, Resource: "cpu", By: "NodeResourcesFit", Nodes: 2,
			Text: "2 nodes lack 2 CPU"}},
		"taint": {func(ctx context.Context, t *testing.T, s scene, group string, pod *corev1.Pod) {
			s.taintAll(ctx, t, group, pod, corev1.Taint{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule})
		}, explain.Finding{Cause: explain.Taint, By: "TaintToleration", Nodes: 2,
			Text: "2 nodes have the untolerated taint team=x:NoSchedule"}},
		"notready": {func(ctx context.Context, t *testing.T, s scene, group string, pod *corev1.Pod) {
			s.taintAll(ctx, t, group, pod, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
		}, explain.Finding{Cause: explain.NotReady, By: "TaintToleration", Nodes: 2, Text: "not ready"}},
		"cordoned": {func(ctx context.Context, t *testing.T, s scene, group string, pod *corev1.Pod) {
			pod.Spec.Tolerations = nil
			s.changeNodes(ctx, t, group, func(n *corev1.Node) { n.Spec.Unschedulable, n.Spec.Taints = true, nil })
		}, explain.Finding{Cause: explain.Cordoned, By: "NodeUnschedulable", Nodes: 2, Text: "cordoned"}},
		"selector": {func(_ context.Context, _ *testing.T, _ scene, _ string, pod *corev1.Pod) {
			pod.Spec.NodeSelector["disk"] = "ssd"
		}, explain.Finding{Cause: explain.NodeAffinity, By: "NodeAffinity", Nodes: others, Text: "disk=ssd"}},
		"affinity": {func(_ context.Context, _ *testing.T, _ scene, _ string, pod *corev1.Pod) {
			pod.Spec.Affinity = &corev1.Affinity{PodAffinity: together("database", corev1.LabelHostname)}
		}, explain.Finding{Cause: explain.PodAffinity, By: "InterPodAffinity", Nodes: others,
			Text: "requires pods app=database in the same kubernetes.io/hostname"}},
		"antiaffinity": {func(ctx context.Context, t *testing.T, s scene, group string, pod *corev1.Pod) {
			s.running(ctx, t, group, func(*corev1.Pod) {})
			pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: apart("other", corev1.LabelHostname)}
		}, explain.Finding{Cause: explain.AntiAffinity, By: "InterPodAffinity", Nodes: 2,
			Text: "excludes pods app=other in the same kubernetes.io/hostname"}},
		"spread": {func(_ context.Context, _ *testing.T, _ scene, _ string, pod *corev1.Pod) {
			pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: "rack", WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			}}
		}, explain.Finding{Cause: explain.Spread, By: "PodTopologySpread", Nodes: others,
			Text: "spreads pods app=web over rack with maxSkew 1"}},
		"port": {func(ctx context.Context, t *testing.T, s scene, group string, pod *corev1.Pod) {
			ports := []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 8080}}
			s.running(ctx, t, group, func(p *corev1.Pod) { p.Spec.Containers[0].Ports = ports })
			pod.Spec.Containers[0].Ports = ports
		}, explain.Finding{Cause: explain.HostPort, By: "NodePorts", Nodes: 2,
			Text: "2 nodes have no free host port TCP/8080, used by explain-port/"}},
		"noscheduler": {func(_ context.Context, _ *testing.T, _ scene, _ string, pod *corev1.Pod) {
			pod.Spec.SchedulerName = "gone"
		}, explain.Finding{Cause: explain.NoScheduler, Text: "the pod names scheduler gone, which was not found"}},
		"extender": {func(_ context.Context, _ *testing.T, _ scene, _ string, pod *corev1.Pod) {
			pod.Spec.SchedulerName = withExtender
		}, explain.Finding{Cause: explain.ExtenderDown, By: "http://127.0.0.1:", Text: "connection refused"}},
		"plugin": {func(_ context.Context, _ *testing.T, _ scene, _ string, pod *corev1.Pod) {
			pod.Spec.SchedulerName = withPlugin
		}, explain.Finding{Cause: explain.Plugin, By: "BlockAll", Nodes: others, Text: "every node is blocked by BlockAll"}},
		"preempting": {preempting,
			explain.Finding{Cause: explain.Preempting, By: "DefaultPreemption", Text: "where 1 pod is terminating"}},
	}
	for name, c := range claims() {
		all[name] = c
	}
	if minor >= 27 { // scheduling gates are on by default from then on
		all["gated"] = pending{func(_ context.Context, _ *testing.T, _ scene, _ string, pod *corev1.Pod) {
			pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}}
		}, explain.Finding{Cause: explain.Gated, By: "SchedulingGates", Text: "example.com/quota"}}
	}
	return all
}

// claims are the causes that volumes have.
func claims() map[string]pending {
	return map[string]pending{
		"missingclaim": {func(_ context.Context, _ *testing.T, _ scene, _ string, pod *corev1.Pod) { mount(pod) },
			explain.Finding{Cause: explain.MissingClaim, By: "VolumeBinding", Nodes: others,
				Text: "claim explain-missingclaim/data does not exist"}},
		"unboundclaim": {func(ctx context.Context, t *testing.T, s scene, group string, pod *corev1.Pod) {
			s.class(ctx, t, group)
			s.claim(ctx, t, group, group, "")
			mount(pod)
		}, explain.Finding{Cause: explain.UnboundClaim, By: "VolumeBinding", Nodes: others,
			Text: "no volume of StorageClass explain-unboundclaim"}},
		"missingclass": {func(ctx context.Context, t *testing.T, s scene, group string, pod *corev1.Pod) {
			s.claim(ctx, t, group, "gone", "")
			mount(pod)
		}, explain.Finding{Cause: explain.MissingClass, By: "VolumeBinding", Nodes: others,
			Text: "StorageClass gone does not exist"}},
		"volumenode": {func(ctx context.Context, t *testing.T, s scene, group string, pod *corev1.Pod) {
			s.volume(ctx, t, group, func(v *corev1.PersistentVolume) {
				v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{
					Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
						{MatchExpressions: []corev1.NodeSelectorRequirement{
							{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"elsewhere"}}}},
					}}}
			})
			s.claim(ctx, t, group, "", group)
			mount(pod)
		}, explain.Finding{Cause: explain.VolumeNode, By: "VolumeBinding", Nodes: others,
			Text: "requires kubernetes.io/hostname In elsewhere"}},
		"volumezone": {func(ctx context.Context, t *testing.T, s scene, group string, pod *corev1.Pod) {
			s.changeNodes(ctx, t, group, func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = "a" })
			s.volume(ctx, t, group,
				func(v *corev1.PersistentVolume) { v.Labels = map[string]string{corev1.LabelTopologyZone: "b"} })
			s.claim(ctx, t, group, "", group)
			mount(pod)
		}, explain.Finding{Cause: explain.VolumeZone, By: "VolumeZone", Nodes: 2,
			Text: "is in topology.kubernetes.io/zone=b"}},
	}
}

func mount(pod *corev1.Pod) {
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}
}

// class creates a StorageClass whose volumes are created at once, by a provisioner that does not
// run.
func (s scene) class(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "example.com/none"}
	if _, err := s.Kube.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// claim creates the claim data of a class, bound to a volume unless that is empty.
func (s scene) claim(ctx context.Context, t *testing.T, namespace, class, volume string) {
	t.Helper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, VolumeName: volume, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}}
	if volume != "" {
		claim.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	}
	if _, err := s.Kube.CoreV1().PersistentVolumeClaims(namespace).Create(ctx, claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// volume creates a volume.
func (s scene) volume(ctx context.Context, t *testing.T, name string, change func(*corev1.PersistentVolume)) {
	t.Helper()
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "example.com",
			VolumeHandle: name}},
	}}
	change(volume)
	if _, err := s.Kube.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// preempting fills both nodes with pods of low priority, whose deletion waits for a kubelet, which
// these nodes do not have.
func preempting(ctx context.Context, t *testing.T, s scene, group string, pod *corev1.Pod) {
	t.Helper()
	s.PriorityClass(ctx, t, group, 1000)
	s.running(ctx, t, group, func(p *corev1.Pod) {
		controlplane.Filling(p)
		grace := int64(3600)
		p.Spec.TerminationGracePeriodSeconds = &grace
	})
	controlplane.Filling(pod)
	pod.Spec.PriorityClassName = group
}
