package shadow

import (
	"encoding/json"
	"net/http"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/foresight/readonly"
)

// selectedNode is the claim annotation that names the node of its first pod
// (pkg/scheduler/framework/plugins/volumebinding).
const selectedNode = "volume.kubernetes.io/selected-node"

// Paths for the writes by which a scheduler decides.
var (
	bindingPath = regexp.MustCompile(`^/api/v1/namespaces/([^/]+)/pods/([^/]+)/binding$`)
	statusPath  = regexp.MustCompile(`^/api/v1/namespaces/([^/]+)/pods/([^/]+)/status$`)
	podPath     = regexp.MustCompile(`^/api/v1/namespaces/([^/]+)/pods/([^/]+)$`)
	evictPath   = regexp.MustCompile(`^/api/v1/namespaces/([^/]+)/pods/([^/]+)/eviction$`)
	claimPath   = regexp.MustCompile(`^/api/v1/namespaces/[^/]+/persistentvolumeclaims/[^/]+$`)
	volumePath  = regexp.MustCompile(`^/api/v1/persistentvolumes/[^/]+$`)
	eventsPath  = regexp.MustCompile(`^/apis?/.*/events/[^/]+$`)
)

// Write implements [readonly.Handler]: it answers a write as if it had been done, except for
// bindings.
func (p *proxy) Write(w http.ResponseWriter, r *http.Request, body []byte) {
	path := r.URL.Path
	if found := bindingPath.FindStringSubmatch(path); found != nil && r.Method == http.MethodPost {
		p.bind(w, found[1], found[2], body)
		return
	}
	if found := statusPath.FindStringSubmatch(path); found != nil && r.Method != http.MethodDelete {
		p.status(w, found[1], found[2], body)
		return
	}
	if found := evictPath.FindStringSubmatch(path); found != nil {
		p.judge.evict(found[1], found[2])
	}
	switch {
	case r.Method == http.MethodDelete:
		if found := podPath.FindStringSubmatch(path); found != nil {
			p.judge.evict(found[1], found[2])
		}
		readonly.Respond(w, http.StatusOK, metav1.Status{Status: metav1.StatusSuccess})
		return
	case r.Method == http.MethodPatch && eventsPath.MatchString(path):
		readonly.Refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the shadow's events are not kept")
		return
	case r.Method == http.MethodPatch: // answered with the unchanged object
		p.AnswerUnchanged(w, r)
		return
	case r.Method == http.MethodPut && (claimPath.MatchString(path) || volumePath.MatchString(path)):
		p.claim(body)
		// The shadow forgets that it has selected a volume, and reports an error for the pod.
		readonly.Refuse(w, http.StatusConflict, metav1.StatusReasonConflict, "the shadow gets no volumes")
		return
	}
	readonly.Echo(w, r, body)
}

// bind records where the shadow puts a pod. It is refused: the shadow then removes the pod from the
// node before it reports the failure. A pod that it believes to be bound would be counted on the
// node until its handler for such pods processes a deletion, which may be after the next decision.
func (p *proxy) bind(w http.ResponseWriter, namespace, name string, body []byte) {
	binding := &corev1.Binding{}
	if err := readonly.DecodeObject(body, binding); err != nil {
		readonly.Refuse(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	message := "the shadow binds no pods"
	if !p.judge.answer(namespace, name, string(binding.UID), answer{node: binding.Target.Name, refused: true}) {
		message = "the decision comes too late"
	}
	readonly.Refuse(w, http.StatusConflict, metav1.StatusReasonConflict, message)
}

// status records that the shadow has no node for a pod, or has failed. Other changes to the status
// are not decisions.
func (p *proxy) status(w http.ResponseWriter, namespace, name string, body []byte) {
	changed := corev1.Pod{}
	if err := json.Unmarshal(body, &changed); err != nil {
		if err := readonly.DecodeObject(body, &changed); err != nil {
			readonly.Refuse(w, http.StatusBadRequest, "BadRequest", err.Error())
			return
		}
	}
	for _, c := range changed.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			undecided := c.Reason == corev1.PodReasonSchedulerError
			p.judge.answer(namespace, name, string(changed.UID), answer{reason: c.Message, undecided: undecided})
		}
	}
	readonly.Respond(w, http.StatusOK, corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
			Name: name, UID: changed.UID},
	})
}

// claim records the node for which the shadow wants to have a volume. It would bind the pod only
// after that.
func (p *proxy) claim(body []byte) {
	claim := &corev1.PersistentVolumeClaim{}
	if readonly.DecodeObject(body, claim) != nil {
		return // an unreadable object names no node
	}
	node := claim.Annotations[selectedNode]
	if node != "" {
		p.judge.provision(claim.Namespace, node)
	}
}
