package ask

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/foresight/readonly"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// selectedNode is the claim annotation that names the node of its first pod
// (pkg/scheduler/framework/plugins/volumebinding).
const selectedNode = "volume.kubernetes.io/selected-node"

// mostPod limits the bytes of a pod, which the API server stores in at most 1.5 MiB.
const mostPod = 8 << 20

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

// Write implements [readonly.Handler]: it takes the scheduler's decisions, and answers other writes
// as if they had been done.
func (v *view) Write(w http.ResponseWriter, r *http.Request, body []byte) {
	path := r.URL.Path
	if found := bindingPath.FindStringSubmatch(path); found != nil && r.Method == http.MethodPost {
		v.bind(w, r, found[1], found[2], body)
		return
	}
	if found := statusPath.FindStringSubmatch(path); found != nil && r.Method != http.MethodDelete {
		v.status(w, r.Method, found[1], found[2], body)
		return
	}
	if found := evictPath.FindStringSubmatch(path); found != nil {
		v.evict(r.Context(), found[1], found[2])
	}
	switch {
	case r.Method == http.MethodDelete:
		if found := podPath.FindStringSubmatch(path); found != nil {
			v.evict(r.Context(), found[1], found[2])
		}
		readonly.Respond(w, http.StatusOK, metav1.Status{Status: metav1.StatusSuccess})
	case r.Method == http.MethodPatch && eventsPath.MatchString(path):
		readonly.Refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the scheduler's events are not kept")
	case r.Method == http.MethodPatch && (v.patchPod(w, path, body) || v.patchClaim(w, path)):
	case r.Method == http.MethodPatch:
		v.AnswerUnchanged(w, r)
	case r.Method == http.MethodPut && claimPath.MatchString(path):
		v.provision(w, r, body)
	case r.Method == http.MethodPut && volumePath.MatchString(path):
		refuseWrite(w, "the scheduler gets no volumes")
	case r.Method == http.MethodPut && deviceClaimPath.MatchString(path):
		v.noteDevices(path, body)
		readonly.Echo(w, r, body)
	default:
		readonly.Echo(w, r, body)
	}
}

// refuseWrite answers so that the scheduler forgets its decision.
func refuseWrite(w http.ResponseWriter, message string) {
	readonly.Refuse(w, http.StatusConflict, metav1.StatusReasonConflict, message)
}

// bind records the node of a pod. It answers only when the question is answered, so that the
// scheduler counts the pod on its node until then, and forgets it after that.
func (v *view) bind(w http.ResponseWriter, r *http.Request, namespace, name string, body []byte) {
	binding := &corev1.Binding{}
	if err := readonly.DecodeObject(body, binding); err != nil {
		readonly.Refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	v.mu.Lock()
	p := v.asked.find(namespace, name, string(binding.UID))
	v.mu.Unlock()
	v.hold(w, r, p, binding.Target.Name)
}

// hold records the node of a pod and holds the answer.
func (v *view) hold(w http.ResponseWriter, r *http.Request, p *askedPod, node string) {
	v.mu.Lock()
	if p == nil || v.asked == nil || v.asked.ending {
		v.mu.Unlock()
		refuseWrite(w, "the decision comes too late")
		return
	}
	q := v.asked
	q.order++
	p.node, p.reason, p.nominated, p.held, p.order = node, "", "", true, q.order
	release := p.release
	q.note()
	v.mu.Unlock()
	select {
	case <-release:
	case <-r.Context().Done():
	}
	refuseWrite(w, "the question is answered")
}

// provision records the node for which the scheduler wants to have a volume, as a pod's node: it
// would bind the pod only after that.
func (v *view) provision(w http.ResponseWriter, r *http.Request, body []byte) {
	claim := &corev1.PersistentVolumeClaim{}
	if readonly.DecodeObject(body, claim) != nil || claim.Annotations[selectedNode] == "" {
		refuseWrite(w, "the scheduler gets no volumes")
		return
	}
	v.mu.Lock()
	var user *askedPod
	if v.asked != nil {
		for _, p := range v.asked.pods {
			if p.namespace == claim.Namespace && usesClaim(p, claim.Name) && !p.decided() {
				user = p
				break
			}
		}
	}
	v.mu.Unlock()
	v.hold(w, r, user, claim.Annotations[selectedNode])
}

// usesClaim reports whether a pod uses a claim.
func usesClaim(p *askedPod, name string) bool {
	volumes, _ := child(p.fields, "spec")["volumes"].([]any)
	for _, volume := range volumes {
		fields, _ := volume.(object)
		if text(child(fields, "persistentVolumeClaim"), "claimName") == name ||
			fields["ephemeral"] != nil && p.name+"-"+text(fields, "name") == name {
			return true
		}
	}
	return false
}

// evict shows a pod as deleted that the scheduler deletes.
func (v *view) evict(ctx context.Context, namespace, name string) {
	v.mu.Lock()
	q := v.asked
	live, known := v.pods[namespace+"/"+name]
	if q == nil || q.ending {
		v.mu.Unlock()
		return
	}
	if q.byKey[namespace+"/"+name] != nil {
		q.disturbed = "the scheduler evicts a pod of the question"
		q.note()
		v.mu.Unlock()
		return
	}
	v.mu.Unlock()
	if !known {
		return
	}
	fields, err := v.readObject(ctx, "/api/v1/namespaces/"+url.PathEscape(namespace)+"/pods/"+url.PathEscape(name))
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.asked != q || q.ending || q.evicted[live.uid] != nil {
		return
	}
	if err != nil || text(child(fields, "metadata"), "uid") != live.uid {
		q.disturbed = "pod " + namespace + "/" + name + " has changed"
		q.note()
		return
	}
	delete(child(fields, "metadata"), "managedFields")
	q.evicted[live.uid] = &evictedPod{namespace: namespace, name: name, node: live.node, fields: fields}
	if w := v.watches[readonly.PodsPath]; w == nil || !w.synced || w.write("DELETED", fields) != nil {
		q.disturbed = "the scheduler does not watch pods"
	}
	q.note()
}

// readObject reads an object of the cluster. It is nil if there is none.
func (v *view) readObject(ctx context.Context, path string) (object, error) {
	response, err := v.Get(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotFound {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, mostPod))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, &statusError{path: path, text: strings.TrimSpace(string(body[:min(len(body), 300)]))}
	}
	return snapshot.Decode(body)
}

// statusError is an answer of the API server that is not the object.
type statusError struct{ path, text string }

func (e *statusError) Error() string { return "read " + e.path + ": " + e.text }
