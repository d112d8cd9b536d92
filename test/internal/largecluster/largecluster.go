// Package largecluster makes the nodes and pods of a large cluster, for benchmarks.
package largecluster

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// NodeName returns the name of a node.
func NodeName(i int) string { return fmt.Sprintf("node-%05d", i) }

// Node returns a ready node with the labels, resources and images that nodes have.
func Node(i int) *corev1.Node {
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("32"),
		corev1.ResourceMemory: resource.MustParse("128Gi"), corev1.ResourcePods: resource.MustParse("110")}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: NodeName(i), Labels: map[string]string{
			corev1.LabelHostname: NodeName(i), corev1.LabelTopologyZone: fmt.Sprintf("zone-%d",
				i%3), corev1.LabelInstanceTypeStable: "large",
		}},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	for j := range 30 {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{
			Names: []string{fmt.Sprintf("registry.example.com/team/image-%d:v1", j),
				fmt.Sprintf("registry.example.com/team/image-%d@sha256:%064d", j, j)}, SizeBytes: int64(j) << 20,
		})
	}
	return n
}

// Pod returns a pod of the size that pods of Deployments have. Nine in ten are bound to one of the
// nodes.
func Pod(i, nodes int) *corev1.Pod {
	no := false
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("app-%04d-%05d", i%1000, i),
			Labels: map[string]string{"app": fmt.Sprintf("app-%04d", i%1000),
				"pod-template-hash": fmt.Sprintf("%08d", i%1000)},
			Annotations: map[string]string{"description": strings.Repeat("x", 1000)},
		},
		Spec: corev1.PodSpec{AutomountServiceAccountToken: &no, Containers: []corev1.Container{{
			Name: "main", Image: fmt.Sprintf("registry.example.com/team/image-%d:v1", i%30), Command: []string{"run",
				strings.Repeat("y", 200)},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"),
				corev1.ResourceMemory: resource.MustParse("256Mi")}},
		}}},
	}
	for j := range 20 {
		p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env,
			corev1.EnvVar{Name: fmt.Sprintf("NAME_%d", j), Value: strings.Repeat("z", 50)})
	}
	if i%10 != 0 {
		p.Spec.NodeName = NodeName(i % nodes)
	}
	return p
}

// List returns a list of nodes, and of pods that are bound or pending, as an API server has them,
// in JSON. The pods of an app are on different nodes.
func List(nodes, bound, pending int) ([]byte, error) {
	list := corev1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}}
	created := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for i := range nodes {
		n := Node(i)
		n.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}
		n.UID, n.CreationTimestamp = uuid.NewUUID(), created
		list.Items = append(list.Items, runtime.RawExtension{Object: n})
	}
	for i := range bound + pending {
		p := Pod(i, nodes)
		p.TypeMeta, p.Namespace = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, metav1.NamespaceDefault
		p.UID, p.CreationTimestamp = uuid.NewUUID(), created
		p.Spec.NodeName, p.Status.Phase = "", corev1.PodPending
		if i < bound {
			p.Spec.NodeName, p.Status.Phase = NodeName((i+i/nodes)%nodes), corev1.PodRunning
		}
		list.Items = append(list.Items, runtime.RawExtension{Object: p})
	}
	return json.Marshal(list)
}
