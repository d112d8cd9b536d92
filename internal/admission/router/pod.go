package router

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newPod are the fields of a pod on which its route depends. Lists of other fields may have a
// million empty elements, which take much more memory than their text.
type newPod struct {
	Metadata struct {
		Annotations     map[string]string       `json:"annotations"`
		OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
	} `json:"metadata"`
	Spec struct {
		SchedulerName  string      `json:"schedulerName"`
		NodeName       string      `json:"nodeName"`
		Containers     []container `json:"containers"`
		InitContainers []container `json:"initContainers"`
	} `json:"spec"`
}

type container struct {
	Resources struct {
		Requests map[corev1.ResourceName]json.RawMessage `json:"requests"`
	} `json:"resources"`
}

// decode returns a pod with the fields on which its route depends, and one container that requests
// some of each resource.
func decode(text []byte) (*corev1.Pod, error) {
	var read newPod
	if err := json.Unmarshal(text, &read); err != nil {
		return nil, err
	}
	requests := corev1.ResourceList{}
	for _, list := range [][]container{read.Spec.Containers, read.Spec.InitContainers} {
		for _, c := range list {
			for name := range c.Resources.Requests {
				requests[name] = *resource.NewQuantity(1, resource.DecimalSI)
			}
		}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Annotations: read.Metadata.Annotations,
			OwnerReferences: read.Metadata.OwnerReferences},
		Spec: corev1.PodSpec{SchedulerName: read.Spec.SchedulerName, NodeName: read.Spec.NodeName,
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}},
	}, nil
}
