package manifest

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// policyKey is the key of the Policy in the ConfigMap that --policy-configmap names in 1.20–1.22
// (pkg/scheduler/apis/config/types.go).
const policyKey = "policy.cfg"

// PolicyConfigMap returns the ConfigMap with a scheduler's legacy Policy. Its name has a hash of
// the Policy.
func PolicyConfigMap(scheduler, namespace string, labels map[string]string, policy []byte) *corev1.ConfigMap {
	meta := metav1.ObjectMeta{Name: scheduler + "-policy", Namespace: namespace, Labels: labels}
	return hashedMap(meta, policyKey, policy)
}

func (s Scheduler) policyMap() *corev1.ConfigMap {
	return PolicyConfigMap(s.Name, s.Namespace, s.labels(), s.Configuration.Policy)
}

// policyName is policyMap's name, or "" without a Policy.
func (s Scheduler) policyName() string {
	if len(s.Configuration.Policy) == 0 {
		return ""
	}
	return s.policyMap().Name
}
