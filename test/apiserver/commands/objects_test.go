//go:build linux

package commands

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// testContext ends with the test, and before a hanging test is stopped from outside.
func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// node makes a ready node with that label and taints; it is gone when the test ends.
func node(ctx context.Context, t *testing.T, name, label string, taints ...corev1.Taint) {
	t.Helper()
	nodes := server.Client(t).CoreV1().Nodes()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label: ""}},
		Spec: corev1.NodeSpec{Taints: taints}}
	n, err := nodes.Create(ctx, n, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := nodes.Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	// Admission taints every new node as not ready; the node lifecycle controller would take that
	// away.
	n.Spec.Taints = taints
	if n, err = nodes.Update(ctx, n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if _, err := nodes.UpdateStatus(ctx, n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

var masterTaint = corev1.Taint{Key: "node-role.kubernetes.io/master", Value: "true",
	Effect: corev1.TaintEffectNoSchedule}

const masterLabel = "node-role.kubernetes.io/master"

// schedulerObjects are a Deployment in the host's network, and a binding, of scheduler name.
func schedulerObjects(name, ns string) []*unstructured.Unstructured {
	labels := map[string]any{ownership.LabelManagedBy: ownership.Manager, ownership.LabelName: ownership.Scheduler,
		ownership.LabelInstance: name}
	return []*unstructured.Unstructured{
		{Object: map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
			"metadata": map[string]any{"name": name + "-as-kube-scheduler", "labels": labels},
			"roleRef": map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
				"name": "system:kube-scheduler"},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": name, "namespace": ns}},
		}},
		{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"name": name, "namespace": ns, "labels": labels},
			"spec": map[string]any{
				"selector": map[string]any{"matchLabels": map[string]any{ownership.LabelInstance: name}},
				"template": map[string]any{
					"metadata": map[string]any{"labels": labels},
					"spec": map[string]any{
						"hostNetwork": true,
						"affinity": map[string]any{
							"nodeAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{
								"nodeSelectorTerms": []any{map[string]any{"matchExpressions": []any{map[string]any{"key": masterLabel,
									"operator": "Exists"}}}},
							}}},
						"tolerations": []any{map[string]any{"key": masterTaint.Key, "operator": "Exists", "effect": "NoSchedule"}},
						"containers":  []any{map[string]any{"name": "kube-scheduler", "image": "localhost/scheduler:1"}},
					},
				},
			},
		}},
	}
}
