package simulate

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/pmk-sched/pmk-sched/internal/cluster/explain"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// pageSize limits the objects that are read with one request.
const pageSize = 500

// Nodes returns the names of the snapshot's nodes, sorted.
func (r *Run) Nodes() []string { return slices.Sorted(maps.Keys(r.nodes)) }

// NodeCount returns the number of nodes on the API server when the objects are loaded.
func (r *Run) NodeCount() int { return r.usage.Nodes + r.addedNodes }

// HasPod reports whether the snapshot has a pod, by namespace and name.
func (r *Run) HasPod(key string) bool { return r.pods[key] }

// Pod reads a pod from the API server.
func (r *Run) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod, err := r.kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, kubeapi.Explain("read pod "+namespace+"/"+name, err)
	}
	return pod, nil
}

// EachPod calls do with each pod on the API server that a field selector selects.
func (r *Run) EachPod(ctx context.Context, selector string, do func(*corev1.Pod) error) error {
	options := metav1.ListOptions{FieldSelector: selector, Limit: pageSize}
	for page, err := range kubeapi.Pages(ctx, r.kube.CoreV1().Pods(metav1.NamespaceAll).List, options) {
		if err != nil {
			return kubeapi.Explain("read the pods", err)
		}
		for i := range page.Items {
			if err := do(&page.Items[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// EachPodMetadata calls do with the metadata of each pod on the API server.
func (r *Run) EachPodMetadata(ctx context.Context, do func(*metav1.ObjectMeta)) error {
	client, err := metadata.NewForConfig(r.Config())
	if err != nil {
		return err
	}
	pods := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"})
	for page, err := range kubeapi.Pages(ctx, pods.List, metav1.ListOptions{Limit: pageSize}) {
		if err != nil {
			return kubeapi.Explain("read the pods", err)
		}
		for i := range page.Items {
			do(&page.Items[i].ObjectMeta)
		}
	}
	return nil
}

// EachNode calls do with each node on the API server.
func (r *Run) EachNode(ctx context.Context, do func(*corev1.Node)) error {
	nodes := r.kube.CoreV1().Nodes()
	for page, err := range kubeapi.Pages(ctx, nodes.List, metav1.ListOptions{Limit: pageSize}) {
		if err != nil {
			return kubeapi.Explain("read the nodes", err)
		}
		for i := range page.Items {
			do(&page.Items[i])
		}
	}
	return nil
}

// Evictors returns the pods that evicted others, by the evicted pod's namespace and name, from the
// scheduler's events. Some releases name only the UID: see [explain.Preemptor].
func (r *Run) Evictors(ctx context.Context) (map[string]string, error) {
	by, byUID := map[string]string{}, map[string]types.UID{}
	options := metav1.ListOptions{FieldSelector: "reason=Preempted", Limit: pageSize}
	for page, err := range kubeapi.Pages(ctx, r.kube.CoreV1().Events(metav1.NamespaceAll).List, options) {
		if err != nil {
			return nil, kubeapi.Explain("read the events of evictions", err)
		}
		for i := range page.Items {
			e := &page.Items[i]
			evicted := e.InvolvedObject.Namespace + "/" + e.InvolvedObject.Name
			if name, uid, _ := explain.Preemptor(e); name != "" {
				by[evicted] = name
			} else if uid != "" {
				byUID[evicted] = uid
			}
		}
	}
	if len(byUID) == 0 {
		return by, nil
	}
	names := map[types.UID]string{}
	err := r.EachPodMetadata(ctx, func(o *metav1.ObjectMeta) { names[o.UID] = o.Namespace + "/" + o.Name })
	for evicted, uid := range byUID {
		by[evicted] = names[uid]
	}
	return by, err
}
