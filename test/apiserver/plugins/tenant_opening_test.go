//go:build linux && (cases || releases)

package plugins

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// opening returns the requests with which a hostile tenant begins, so that a short attack has them
// too: a quota of another name, pods that bypass the scheduler with sums beyond an integer or with
// devices that do not exist, and more pods than the limits allow.
func (a *attacker) opening() (acts []func(context.Context) error) {
	create := func(name string, need amounts, change func(*corev1.Pod)) {
		acts = append(acts, func(ctx context.Context) error {
			pod := a.x.pod(name, need)
			pod.Labels = map[string]string{}
			if change != nil {
				change(pod)
			}
			return a.createPod(ctx, pod)
		})
	}
	acts = append(acts, func(ctx context.Context) error {
		much := amounts{"cpu": "1000", "memory": "1000Gi", gpuMilli: "100000", "pods": "100000"}.object()
		return a.write(ctx, a.objects.Resource(elasticQuotas).Namespace(a.namespace),
			quotaObject("a-0", map[string]any{"min": much, "max": much}))
	})
	onNode := func(node, devices string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Labels[bypass], pod.Spec.NodeName = "true", "siege-"+node
			pod.Annotations = map[string]string{gpuIndex: devices}
		}
	}
	for i, devices := range []string{"99", "0,0", "-1", "NaN"} {
		create(fmt.Sprint("device-", i), amounts{gpuMilli: "1"}, onNode(fmt.Sprint(i), devices))
	}
	for i := range 6 {
		create(fmt.Sprint("share-", i), amounts{gpuMilli: "600"}, nil)
	}
	for i := range 10 {
		create(fmt.Sprint("cpu-", i), amounts{"cpu": "1", "memory": "1Gi"}, nil)
	}
	for i := range 2 {
		create(fmt.Sprint("sum-", i), amounts{"cpu": "1m", "memory": "6Ei"}, onNode("nowhere", ""))
	}
	for i := range 8 {
		create(fmt.Sprint("after-", i), amounts{"cpu": "1m", "memory": "1Gi"}, nil)
	}
	return append(acts, a.createGang, a.createGang, a.createGang)
}
