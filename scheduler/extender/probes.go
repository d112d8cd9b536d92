package extender

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// probeLabel and probeComponent are the label of the pods with which pmk-sched verifies schedulers
	// and extenders (LabelComponent and ComponentVerify in internal/cluster/ownership).
	probeLabel, probeComponent = "app.kubernetes.io/component", "verify"
	// maxProbes is the maximum number of recorded pods. maxProbeID bounds each pod's names and UID,
	// which a caller may have invented: the API server accepts no longer ones.
	maxProbes  = 64
	maxProbeID = 63 + 253 + 64
)

// probes are the last pods of verifications for which the extender has answered requests. They
// prove that the scheduler of such a pod calls the extender, whoever else does.
type probes struct {
	// exists reports whether the cluster has the pod.
	exists func(p probe) bool

	mu   sync.Mutex
	list []probe // oldest first
}

type probe struct {
	namespace, name string
	uid             types.UID
	verbs           []string
}

// note records that the extender has answered a request for the pod. If there are too many, the
// oldest pod that the cluster does not have is removed, so that invented pods remove no real one,
// or else the oldest one.
func (r *probes) note(verb string, pod *corev1.Pod) {
	if pod == nil || pod.UID == "" || pod.Labels[probeLabel] != probeComponent ||
		len(pod.Namespace)+len(pod.Name)+len(pod.UID) > maxProbeID {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.list, func(p probe) bool { return p.uid == pod.UID })
	if i < 0 {
		if len(r.list) == maxProbes {
			oldest := slices.IndexFunc(r.list, func(p probe) bool { return !r.exists(p) })
			r.list = slices.Delete(r.list, max(oldest, 0), max(oldest, 0)+1)
		}
		i = len(r.list)
		// Copies, which do not keep the request's body.
		r.list = append(r.list, probe{namespace: strings.Clone(pod.Namespace), name: strings.Clone(pod.Name),
			uid: types.UID(strings.Clone(string(pod.UID)))})
	}
	if p := &r.list[i]; !slices.Contains(p.verbs, verb) {
		p.verbs = append(p.verbs, verb)
	}
}

// verbs returns the verbs that were answered for the pod, in the order of the first answers.
func (r *probes) verbs(uid types.UID) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.list {
		if p.uid == uid {
			return slices.Clone(p.verbs)
		}
	}
	return []string{}
}

// inCache reports whether the cache has the pod.
func (e *Extender) inCache(p probe) bool {
	if e.cache == nil {
		return false
	}
	pod, err := e.cache.pods.Pods(p.namespace).Get(p.name)
	return err == nil && pod.UID == p.uid
}

// answeredFor is the answer to GET /answered.
type answeredFor struct {
	// Pod is the request's UID.
	Pod   types.UID `json:"pod"`
	Verbs []string  `json:"verbs"`
}

// serveAnswered answers which verbs the extender has answered for a verification's pod. A page
// instead of a metric, since a UID as a label would add a time series for each verification.
func (e *Extender) serveAnswered(w http.ResponseWriter, r *http.Request) {
	uid := types.UID(r.URL.Query().Get("pod"))
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answeredFor{Pod: uid, Verbs: e.probes.verbs(uid)}); err != nil {
		e.log.Debug("an answer could not be written", zap.String("path", r.URL.Path), zap.Error(err))
	}
}
