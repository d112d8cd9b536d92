package ask

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/foresight/readonly"
)

// status records that the scheduler has no node for a pod, or that it has forgotten its node. Of
// other changes, it shows annotations to the scheduler.
func (v *view) status(w http.ResponseWriter, method, namespace, name string, body []byte) {
	changed := corev1.Pod{}
	if err := json.Unmarshal(body, &changed); err != nil {
		if err := readonly.DecodeObject(body, &changed); err != nil {
			readonly.Refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
			return
		}
	}
	v.mu.Lock()
	if p := v.asked.find(namespace, name, string(changed.UID)); p != nil {
		v.asked.decline(p, &changed.Status)
		if p.nominated != "" && !v.asked.ending {
			v.showNominated(p)
		}
		if method == http.MethodPatch {
			v.annotate(p, changed.Annotations)
		}
	}
	v.mu.Unlock()
	readonly.Respond(w, http.StatusOK, corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: changed.UID},
	})
}

// decline records the scheduler's reason for a pod.
func (q *asked) decline(p *askedPod, status *corev1.PodStatus) {
	for _, c := range status.Conditions {
		if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse {
			continue
		}
		q.order++
		switch {
		case p.held:
			p.forgotten = true
		case c.Reason == corev1.PodReasonSchedulerError:
			p.failed, p.reason, p.order = true, c.Message, q.order
		default:
			p.refused, p.reason, p.nominated, p.order = true, c.Message, status.NominatedNodeName, q.order
		}
		q.note()
	}
}

// showNominated shows a pod's nominated node to the scheduler, which uses it first when it tries
// the pod again. It is no reason to try it: the evicted pods may not be gone yet. v is locked.
func (v *view) showNominated(p *askedPod) {
	p.fields = maps.Clone(p.fields)
	p.setStatus(p.nominated)
	v.modify(p)
}

// modify shows a changed pod to the scheduler, which tries it again only if the version is another
// one than before (updatePodInSchedulingQueue in pkg/scheduler/eventhandlers.go): a version with
// another zero before it is another one for the scheduler, and the same for the API server. v is
// locked.
func (v *view) modify(p *askedPod) {
	w := v.watches[readonly.PodsPath]
	if w == nil || !w.synced {
		return
	}
	shown := v.stamped(readonly.PodsPath, p.fields)
	metadata := child(shown, "metadata")
	metadata["resourceVersion"] = strings.Repeat("0", p.updates) + text(metadata, "resourceVersion")
	_ = w.write("MODIFIED", shown) // the watch ends, and the question is disturbed
}

// annotate shows annotations of a pod that waits to the scheduler, which tries the pod again
// because of them: plugins wake pods by annotations. v is locked.
func (v *view) annotate(p *askedPod, annotations map[string]string) {
	if len(annotations) == 0 || v.asked.ending || p.node != "" || p.skipped {
		return
	}
	p.fields = maps.Clone(p.fields)
	metadata := maps.Clone(child(p.fields, "metadata"))
	all := maps.Clone(child(metadata, "annotations"))
	if all == nil {
		all = object{}
	}
	for name, value := range annotations {
		all[name] = value
	}
	metadata["annotations"], p.fields["metadata"] = all, metadata
	p.refused = false
	p.updates++
	v.modify(p)
	v.asked.note()
}

// patchPod answers a patch of a question's pod with the pod, and shows its annotations to the
// scheduler.
func (v *view) patchPod(w http.ResponseWriter, path string, body []byte) bool {
	found := podPath.FindStringSubmatch(path)
	if found == nil {
		return false
	}
	var changed struct {
		Metadata struct{ Annotations map[string]string }
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.asked.find(found[1], found[2], "")
	if p == nil {
		return false
	}
	if err := json.Unmarshal(body, &changed); err != nil {
		readonly.Refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return true
	}
	v.annotate(p, changed.Metadata.Annotations)
	readonly.Respond(w, http.StatusOK, p.fields)
	return true
}
