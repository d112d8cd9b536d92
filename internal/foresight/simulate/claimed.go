package simulate

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// retryClaiming makes the scheduler try the pods again, once, that have no node and whose claims
// were created after them, and waits for its decisions. A scheduler can see a pod's claim before
// its VolumeBinding plugin's cache has it (volumebinding/assume_cache.go). It fails, and tries the
// pod again only after minutes, if the claim's event has passed by then.
func (r *run) retryClaiming(ctx context.Context, s *scheduler) error {
	claiming := map[string]bool{}
	for _, w := range r.waiting {
		if len(r.deferred[w.UID]) > 0 {
			claiming[w.Key] = true
		}
	}
	if len(claiming) == 0 {
		return nil
	}
	kube, err := kubernetes.NewForConfig(r.server.Config())
	if err != nil {
		return err
	}
	retried := false
	pending := metav1.ListOptions{FieldSelector: "spec.nodeName=", Limit: pageSize}
	for page, err := range kubeapi.Pages(ctx, kube.CoreV1().Pods(metav1.NamespaceAll).List, pending) {
		if err != nil {
			return kubeapi.Explain("read the pods", err)
		}
		for i := range page.Items {
			pod := &page.Items[i]
			if !claiming[pod.Namespace+"/"+pod.Name] {
				continue
			}
			retried = true
			_, err := kube.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, []byte(updated),
				metav1.PatchOptions{})
			if err != nil {
				return kubeapi.Explain("update pod "+pod.Namespace+"/"+pod.Name, err)
			}
		}
	}
	if !retried {
		return nil
	}
	return s.awaitDecisions(ctx, len(r.waiting))
}
