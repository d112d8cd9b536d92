package manifest

import corev1 "k8s.io/api/core/v1"

// policyKey is where 1.20–1.22 look for a Policy in the ConfigMap that
// --policy-configmap names (pkg/scheduler/apis/config/types.go).
const policyKey = "policy.cfg"

// policyMap holds the legacy Policy.
func (s Scheduler) policyMap() *corev1.ConfigMap {
	return s.configMap(s.Name+"-policy", policyKey, s.Configuration.Policy)
}

// policyName is the name of policyMap, or "" where there is no Policy.
func (s Scheduler) policyName() string {
	if len(s.Configuration.Policy) == 0 {
		return ""
	}
	return s.policyMap().Name
}
