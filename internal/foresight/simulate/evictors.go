package simulate

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/cluster/explain"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// preemptors returns the pods that evicted others, by the evicted pod's namespace and name, from
// the scheduler's events. Some releases name only the UID: see [explain.Preemptor].
func preemptors(ctx context.Context, kube kubernetes.Interface) (map[string]string, error) {
	by, byUID := map[string]string{}, map[string]types.UID{}
	options := metav1.ListOptions{FieldSelector: "reason=Preempted", Limit: pageSize}
	for page, err := range kubeapi.Pages(ctx, kube.CoreV1().Events(metav1.NamespaceAll).List, options) {
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
	names, err := podNames(ctx, kube)
	for evicted, uid := range byUID {
		by[evicted] = names[uid]
	}
	return by, err
}

// podNames returns all pods' namespaces and names, by UID.
func podNames(ctx context.Context, kube kubernetes.Interface) (map[types.UID]string, error) {
	names := map[types.UID]string{}
	pods := kube.CoreV1().Pods(metav1.NamespaceAll)
	for page, err := range kubeapi.Pages(ctx, pods.List, metav1.ListOptions{Limit: pageSize}) {
		if err != nil {
			return nil, kubeapi.Explain("read the pods that evicted others", err)
		}
		for i := range page.Items {
			names[page.Items[i].UID] = page.Items[i].Namespace + "/" + page.Items[i].Name
		}
	}
	return names, nil
}

// mostEventDelay bounds the wait for events, which the scheduler writes some time after it evicts.
const mostEventDelay = 5 * time.Second

// nameEvictors adds the pods for which others were evicted.
func (d *replayer) nameEvictors(ctx context.Context) error {
	if len(d.result.Evicted) == 0 {
		return nil
	}
	kube, err := kubernetes.NewForConfig(d.r.server.Config())
	if err != nil {
		return err
	}
	for began := time.Now(); ; {
		by, err := preemptors(ctx, kube)
		if err != nil {
			return err
		}
		if d.nameEvictorsFrom(by) || time.Since(began) > mostEventDelay {
			return nil
		}
		if err := clock.Sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// nameEvictorsFrom is nameEvictors with the events so far. It reports whether no event is missing.
func (d *replayer) nameEvictorsFrom(by map[string]string) bool {
	all := true
	for i := range d.result.Evicted {
		e := &d.result.Evicted[i]
		e.By = by[e.Namespace+"/"+e.Name]
		all = all && e.By != ""
	}
	return all
}
