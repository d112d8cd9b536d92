//go:build linux

package plugins

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// lag is how much later the scheduler may know a change than this test: a limit counts from then
// on.
const lag = 10 * time.Second

// model is the state of the cluster as the events of the API server have it, in their order. It
// knows nothing of the plugins.
type model struct {
	seed uint64

	mu       sync.Mutex
	random   *rand.Rand
	pods     map[types.UID]*record
	machines map[string]*machine
	gangs    map[string]*gangRecord
	teams    map[string]*team
	// restarted is the resource version after the last start of the scheduler but the first.
	restarted int64
	// bindings, evictions, resizes, placed gangs and restarts are counted for the log of the test.
	bindings, evictions, resizes, placed, restarts int
	removed                                        map[types.UID]bool // by operations
	// seen is the resource version of the last event.
	seen      int64
	log       []line
	count     int // operations so far
	violation string
	changed   chan struct{} // after each event
}

// line is an operation or an event in the log of the model.
type line struct {
	number  int
	text    string
	objects []string
}

// record is a pod.
type record struct {
	pod                *corev1.Pod
	createdAt, boundAt time.Time
	// created, bound and ended are resource versions. ended is set when the pod has finished or is
	// gone.
	created, bound, ended int64
	history               []request
	// zones are the zones of its containers.
	zones []int
}

// request is what a pod takes from a time on.
type request struct {
	at   time.Time
	need sums
}

func (r *record) key() string { return keyOf(r.pod) }

func keyOf(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

func (r *record) need() sums { return r.history[len(r.history)-1].need }

// takes reports whether the pod takes room on a node.
func (r *record) takes() bool { return r.bound > 0 && r.ended == 0 }

func (r *record) pending() bool { return r.bound == 0 && r.ended == 0 }

func (r *record) gang() string { return gangOf(r.pod) }

func gangOf(pod *corev1.Pod) string {
	if name := pod.Labels[groupLabel]; name != "" {
		return pod.Namespace + "/" + name
	}
	return ""
}

// least returns the least that the pod has taken since a time: a pod that was resized counts in the
// decisions of the scheduler when it knows the resize.
func (r *record) least(since time.Time) sums {
	least := r.need().clone()
	for i := len(r.history) - 2; i >= 0 && r.history[i+1].at.After(since); i-- {
		for name := range least {
			least[name] = min(least[name], r.history[i].need[name])
		}
	}
	return least
}

// gangRecord is a gang from its creation on.
type gangRecord struct {
	key          string
	size         int
	firstBound   int64
	firstBoundAt time.Time
	// everBound are the pods that were ever bound, lost is when pods were deleted that were not.
	everBound map[types.UID]bool
	lost      []time.Time
	interrupt bool
}

func newModel(seed uint64) *model {
	return &model{
		seed: seed, random: rand.New(rand.NewPCG(seed, 0)), pods: map[types.UID]*record{},
		machines: map[string]*machine{}, gangs: map[string]*gangRecord{}, teams: map[string]*team{},
		removed: map[types.UID]bool{}, changed: make(chan struct{}, 1),
	}
}

// note adds a line to the log. The caller holds m.mu.
func (m *model) note(text string, objects ...string) {
	m.log = append(m.log, line{number: m.count, text: text, objects: objects})
}

// violate records the first violation. The caller holds m.mu.
func (m *model) violate(text string, objects ...string) {
	if m.violation == "" {
		m.violation = fmt.Sprintf("seed %d, operation %d: %s\n%s", m.seed, m.count, text, m.history(objects...))
	}
}

// history returns the last lines of the log that concern objects. The caller holds m.mu.
func (m *model) history(objects ...string) string {
	var found []string
	for i := len(m.log) - 1; i >= 0 && len(found) < 25; i-- {
		if slices.ContainsFunc(m.log[i].objects,
			func(o string) bool { return o == everything || o != "" && slices.Contains(objects, o) }) {
			found = append(found, fmt.Sprintf("  %d: %s", m.log[i].number, m.log[i].text))
		}
	}
	slices.Reverse(found)
	return strings.Join(found, "\n")
}

// check fails the test if the model has found a violation.
func (m *model) check(t *testing.T) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.violation != "" {
		t.Fatal(m.violation)
	}
}

// observe adds a version of a pod. It returns the record and what is new: the pod was bound, or has
// ended. The caller holds m.mu.
func (m *model) observe(pod *corev1.Pod, gone bool) (r *record, bound, ended bool) {
	version, now := versionOf(pod), time.Now()
	m.seen = version
	r = m.pods[pod.UID]
	if r == nil {
		r = &record{created: version, createdAt: now}
		m.pods[pod.UID] = r
	}
	r.pod = pod
	if need := requestOf(pod); len(r.history) == 0 || !equal(need, r.need()) {
		r.history = append(r.history, request{at: now, need: need})
		m.resizes += min(1, len(r.history)-1)
	}
	if r.bound == 0 && pod.Spec.NodeName != "" {
		r.bound, r.boundAt, bound = version, now, true
	}
	finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if r.ended == 0 && (finished || gone) {
		r.ended, ended = version, true
	}
	m.observeGang(r, bound, gone)
	if gone {
		if ended && r.bound > 0 && !m.removed[pod.UID] {
			m.evictions++
		}
		delete(m.removed, pod.UID)
		delete(m.pods, pod.UID)
	}
	return r, bound, ended
}

func (m *model) observeGang(r *record, bound, gone bool) {
	g := m.gangs[r.gang()]
	if g == nil {
		return
	}
	if bound {
		g.everBound[r.pod.UID] = true
		if len(g.everBound) == g.size {
			m.placed++
		}
		if g.firstBound == 0 {
			g.firstBound, g.firstBoundAt = r.bound, r.boundAt
		}
	}
	if gone && r.bound == 0 {
		g.lost = append(g.lost, time.Now())
	}
}

func versionOf(pod *corev1.Pod) int64 {
	version, err := strconv.ParseInt(pod.ResourceVersion, 10, 64)
	if err != nil {
		panic(err)
	}
	return version
}

func equal(a, b sums) bool { return a.covers(b) && b.covers(a) }

// sorted returns the pods for which selected is true, in the order of their names. The caller holds
// m.mu.
func (m *model) sorted(selected func(*record) bool) []*record {
	var all []*record
	for _, r := range m.pods {
		if selected(r) {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *record) int {
		return cmp.Or(cmp.Compare(a.key(), b.key()), cmp.Compare(a.pod.UID, b.pod.UID))
	})
	return all
}

// on returns the pods that take room on a node.
func (m *model) on(node string) []*record {
	return m.sorted(func(r *record) bool { return r.takes() && r.pod.Spec.NodeName == node })
}
