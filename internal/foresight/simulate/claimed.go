package simulate

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// retryClaiming makes the scheduler try the pods again, once, that have no node and whose claims
// were created after them, and waits for its decisions. A scheduler can see a pod's claim before
// its VolumeBinding plugin's cache has it (volumebinding/assume_cache.go). It fails, and tries the
// pod again only after minutes, if the claim's event has passed by then.
func (r *Run) retryClaiming(ctx context.Context) error {
	claiming := map[string]bool{}
	for _, w := range r.Waiting {
		if len(r.deferred[w.UID]) > 0 {
			claiming[w.Key] = true
		}
	}
	if len(claiming) == 0 {
		return nil
	}
	retried := false
	err := r.EachPod(ctx, "spec.nodeName=", func(pod *corev1.Pod) error {
		if !claiming[pod.Namespace+"/"+pod.Name] {
			return nil
		}
		retried = true
		_, err := r.kube.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, []byte(updated),
			metav1.PatchOptions{})
		return kubeapi.Explain("update pod "+pod.Namespace+"/"+pod.Name, err)
	})
	if err != nil || !retried {
		return err
	}
	return r.Scheduler.AwaitDecisions(ctx, len(r.Waiting))
}
