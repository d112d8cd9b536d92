//go:build linux

package commands

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const (
	controlPlaneLabel = "node-role.kubernetes.io/control-plane"
	upstreamImage     = "registry.k8s.io/kube-scheduler:v1.24.3"
)

var controlPlane = []string{"cp-1", "cp-2", "cp-3"}

// kubeadmCluster makes three control-plane nodes of kubeadm with the static pods of their
// schedulers, and returns a function that runs pmk-sched.
func kubeadmCluster(t *testing.T) func(args ...string) run.Result {
	t.Helper()
	empty(t)
	kube := server.Client(t)
	ctx := run.Context(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := kube.CoreV1().ServiceAccounts("kube-system").Create(ctx, account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	no := false
	for i, name := range controlPlane {
		node, err := kube.CoreV1().Nodes().Create(ctx,
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
				Labels: map[string]string{controlPlaneLabel: "", corev1.LabelHostname: name,
					corev1.LabelArchStable: runtime.GOARCH}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		node.Spec.Taints = []corev1.Taint{{Key: controlPlaneLabel, Effect: corev1.TaintEffectNoSchedule}}
		node, err = kube.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		node.Status.NodeInfo.KubeletVersion = apiserver.Release
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.0.%d", i+1)}}
		if _, err := kube.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "kube-scheduler-" + name,
				Labels:      map[string]string{"component": "kube-scheduler", "tier": "control-plane"},
				Annotations: map[string]string{corev1.MirrorPodAnnotationKey: name, "kubernetes.io/config.source": "file"}},
			Spec: corev1.PodSpec{NodeName: name, HostNetwork: true, AutomountServiceAccountToken: &no,
				Containers: []corev1.Container{{
					Name: "kube-scheduler", Image: upstreamImage, Command: []string{"kube-scheduler",
						"--kubeconfig=/etc/kubernetes/scheduler.conf", "--leader-elect=true"},
				}}},
		}
		if _, err := kube.CoreV1().Pods("kube-system").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	config := kubeconfig(t)
	return func(args ...string) run.Result {
		t.Helper()
		return run.PMKSched(t, append([]string{"--kubeconfig", config}, args...)...)
	}
}
