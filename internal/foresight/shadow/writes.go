package shadow

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// mostBytes is more than an API server accepts.
const mostBytes = 8 << 20

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

// write answers a write as if it had been done, except for bindings.
func (p *proxy) write(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBytes))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", err.Error())
		return
	}
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
		respond(w, http.StatusOK, metav1.Status{Status: metav1.StatusSuccess})
		return
	case r.Method == http.MethodPatch && eventsPath.MatchString(path):
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the shadow's events are not kept")
		return
	case r.Method == http.MethodPatch: // answered with the unchanged object
		read := r.Clone(r.Context())
		read.Method, read.Body, read.ContentLength, read.URL.RawQuery = http.MethodGet, http.NoBody, 0, ""
		read.URL.Path = strings.TrimSuffix(path, "/status")
		read.Header.Del("Content-Type")
		read.Header.Del("Content-Length")
		p.reads.ServeHTTP(w, read)
		return
	case r.Method == http.MethodPut && (claimPath.MatchString(path) || volumePath.MatchString(path)):
		p.claim(body)
		// The shadow forgets that it has selected a volume, and reports an error for the pod.
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict, "the shadow gets no volumes")
		return
	}
	echo(w, r, body)
}

// bind records where the shadow puts a pod. It is refused: the shadow then removes the pod from the
// node before it reports the failure. A pod that it believes to be bound would be counted on the
// node until its handler for such pods processes a deletion, which may be after the next decision.
func (p *proxy) bind(w http.ResponseWriter, namespace, name string, body []byte) {
	binding := &corev1.Binding{}
	if err := decodeObject(body, binding); err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	message := "the shadow binds no pods"
	if !p.judge.answer(namespace, name, string(binding.UID), answer{node: binding.Target.Name, refused: true}) {
		message = "the decision comes too late"
	}
	refuse(w, http.StatusConflict, metav1.StatusReasonConflict, message)
}

// status records that the shadow has no node for a pod, or has failed. Other changes to the status
// are not decisions.
func (p *proxy) status(w http.ResponseWriter, namespace, name string, body []byte) {
	changed := corev1.Pod{}
	if err := json.Unmarshal(body, &changed); err != nil {
		if err := decodeObject(body, &changed); err != nil {
			refuse(w, http.StatusBadRequest, "BadRequest", err.Error())
			return
		}
	}
	for _, c := range changed.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			undecided := c.Reason == corev1.PodReasonSchedulerError
			p.judge.answer(namespace, name, string(changed.UID), answer{reason: c.Message, undecided: undecided})
		}
	}
	respond(w, http.StatusOK, corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
			Name: name, UID: changed.UID},
	})
}

// claim records the node for which the shadow wants to have a volume. It would bind the pod only
// after that.
func (p *proxy) claim(body []byte) {
	claim := &corev1.PersistentVolumeClaim{}
	if decodeObject(body, claim) != nil {
		return // an unreadable object names no node
	}
	node := claim.Annotations[selectedNode]
	if node != "" {
		p.judge.provision(claim.Namespace, node)
	}
}

// decodeObject decodes an object in any API format.
func decodeObject(body []byte, into runtime.Object) error {
	_, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, into)
	if err != nil {
		return fmt.Errorf("read what the shadow writes: %w", err)
	}
	return nil
}

// stored is an object that the shadow has written.
type stored struct {
	contentType string
	body        []byte
}

// lease answers requests for leases: the shadow has its own, so that it always is the leader.
func (p *proxy) lease(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Method == http.MethodGet {
		if s, ok := p.leases[r.URL.Path]; ok {
			w.Header().Set("Content-Type", s.contentType)
			_, _ = w.Write(s.body) // the shadow has gone
			return
		}
		refuse(w, http.StatusNotFound, "NotFound", "the shadow has not written it")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBytes))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", err.Error())
		return
	}
	path := r.URL.Path
	if r.Method == http.MethodPost {
		named, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if object, ok := named.(metav1.Object); err == nil && ok {
			path += "/" + object.GetName()
		}
	}
	p.leases[path] = stored{r.Header.Get("Content-Type"), body}
	echo(w, r, body)
}

// echo answers with the written object.
func echo(w http.ResponseWriter, r *http.Request, body []byte) {
	w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
	if r.Method == http.MethodPost {
		w.WriteHeader(http.StatusCreated)
	}
	_, _ = w.Write(body) // the shadow has gone
}

func respond(w http.ResponseWriter, code int, object any) {
	if status, ok := object.(metav1.Status); ok {
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		object = status
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object) // the shadow has gone
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	respond(w, code, metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message})
}
