// Package ask answers questions about a live cluster: whether pods fit, where, whom they would
// evict, and which change would help if they do not fit.
//
// The real scheduler answers. It runs on this machine and sees the live cluster through a proxy
// ([readonly.Proxy]), which shows it the pods of a question, takes its bindings and evictions, and
// makes it forget them. Nothing is written to the cluster.
package ask

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// MostPods limits the pods of a question, and MostManifests its manifests.
const (
	MostPods      = 2000
	MostManifests = 200
)

// Question asks whether the pods of manifests fit.
type Question struct {
	// Manifests are Pods, Deployments, ReplicaSets, StatefulSets, Jobs and the objects that their pods
	// need, such as claims and pod groups.
	Manifests []map[string]any `json:"manifests"`
	// Count is the number of copies of all manifests. It defaults to 1.
	Count int `json:"count,omitempty"`
	// Scheduler is the name of the scheduler. It defaults to the scheduler that the pods name.
	Scheduler string `json:"scheduler,omitempty"`
	// Changes is set to false if no change is to be found for pods that do not fit.
	Changes *bool `json:"changes,omitempty"`
}

// Values of [Answer.Fits].
const (
	Yes     = "yes"
	No      = "no"
	Unknown = "unknown"
)

// Answer is the answer to a question.
type Answer struct {
	// Fits is yes if every pod has a node, no if the scheduler has none for some pod, and unknown if
	// it has not decided, or decides only in a cluster.
	Fits string `json:"fits"`
	// Scheduler is the scheduler's name, and Release its release, such as v1.24.3.
	Scheduler string `json:"scheduler"`
	Release   string `json:"release"`
	Pods      []Pod  `json:"pods"`
	// Evicted are the pods that the scheduler would evict.
	Evicted []Evicted `json:"evicted"`
	// Changes are the smallest changes that were found with which all pods fit. Each was tried.
	Changes []Change `json:"changes,omitempty"`
	// AgeSeconds is an upper bound on the age of the pods that the scheduler knew, and Seconds the
	// time that the answer took.
	AgeSeconds float64 `json:"ageSeconds"`
	Seconds    float64 `json:"seconds"`
	// Notes are about the question, and Unknown lists facts that the answer does not contain.
	Notes   []string `json:"notes,omitempty"`
	Unknown []string `json:"unknown"`
}

// Pod is a pod of a question with its node. If it has none, Reason is the reason.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Node      string `json:"node,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// Evicted is a pod that the scheduler would evict, with its node.
type Evicted struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Node      string `json:"node"`
}

// Change is a change with which all pods fit.
type Change struct {
	// Kind is count, requests, toleration or node.
	Kind string `json:"kind"`
	// Text describes the change.
	Text string `json:"text"`
	// Evicts is the number of pods that the scheduler would evict then.
	Evicts int `json:"evicts,omitempty"`
}

// read returns the scenario of a question. The error is about the user's input (package problem).
func (q *Question) read() (scenario.Scenario, error) {
	count := q.Count
	if count == 0 {
		count = 1
	}
	switch {
	case count < 0 || count > MostPods:
		return scenario.Scenario{}, problem.Invalidf("", "invalid count %d: must be between 1 and %d", count, MostPods)
	case len(q.Manifests) > MostManifests:
		return scenario.Scenario{}, problem.Invalidf("", "%d manifests: must be at most %d", len(q.Manifests), MostManifests)
	}
	s, err := scenario.Add(q.Manifests, count, 0)
	if err != nil {
		return s, err
	}
	pods := 0
	for i := range s.Workloads {
		pods += s.Workloads[i].Replicas * count
		if s.Workloads[i].Replicas > MostPods || pods > MostPods {
			return s, problem.Invalidf("ask about fewer copies", "the question has more than %d pods", MostPods)
		}
	}
	return s, nil
}

// namespaces returns the namespaces of the pods.
func namespaces(s *scenario.Scenario) []string {
	found := map[string]bool{}
	for i := range s.Workloads {
		found[s.Workloads[i].Namespace] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// built is a question as pods and other objects, before it is tried.
type built struct {
	pods   []scenario.Waiting
	others []scenario.Object
	// uses are the ResourceClaims of pods, by the key of the pod.
	uses map[string][]string
	// refused are the pods that the API server would not create, with the reasons.
	refused map[string]string
	notes   []string
}

// build makes the pods of a scenario, like `simulate add`. taken reports whether the cluster has a
// pod.
func (c *classes) build(
	s *scenario.Scenario, taken func(key string) bool, templates scenario.ClaimTemplates,
) (*built, error) {
	b := &built{uses: map[string][]string{}, refused: map[string]string{}, notes: slices.Clone(s.Notes)}
	for _, o := range s.Objects {
		switch o.Kind.Name {
		case "PriorityClass", "RuntimeClass", "StorageClass", "LimitRange":
			return nil, problem.Invalidf("create it first, or use `pmk-sched simulate add`",
				"a question cannot add a %s", o.Kind.Name)
		case "ResourceClaimTemplate":
			continue // no scheduler reads it
		}
		b.others = append(b.others, o)
	}
	next := make([]int, len(s.Workloads))
	number := 0
	for range s.Count {
		for i := range s.Workloads {
			var replicas []scenario.Replica
			replicas, next[i] = s.Workloads[i].Copy(next[i], taken, templates)
			for _, replica := range replicas {
				number++
				if err := c.addReplica(b, &replica, number); err != nil {
					return nil, err
				}
			}
		}
	}
	scenario.Sort(b.pods)
	for i := range b.others {
		switch b.others[i].Kind.Name {
		case "PersistentVolumeClaim":
			b.others[i].Fields = c.admitClaim(b.others[i].Fields)
		case claimKind:
			b.others[i].Fields = completeDeviceClaim(b.others[i].Fields)
		}
	}
	return b, nil
}

// addReplica adds a pod with its claims. number is its place.
func (c *classes) addReplica(b *built, replica *scenario.Replica, number int) error {
	if scenario.HasClaims(replica.Pod) {
		b.uses[replica.Key] = scenario.ClaimsOf(replica.Pod)
	}
	pod, refused, err := c.admit(replica.Pod)
	if err != nil {
		return err
	}
	if refused != "" {
		b.refused[replica.Key] = "not created: " + refused
	}
	text, err := snapshot.Encode(pod)
	if err != nil {
		return err
	}
	var decoded map[string]any
	if decoded, err = snapshot.Decode(text); err != nil { // with numbers as in JSON
		return err
	}
	w := scenario.NewWaiting(replica.Key, decoded, text)
	w.Created = sequence(number)
	b.pods = append(b.pods, w)
	b.others = append(append(b.others, replica.Claims...), replica.Owned...)
	return nil
}

// sequence returns a text that sorts like a number.
func sequence(n int) string {
	text, _ := json.Marshal(1_000_000_000 + n) // a number can be encoded
	return string(text)
}

// admitClaim gives a claim the default StorageClass.
func (c *classes) admitClaim(claim object) object {
	spec := child(claim, "spec")
	if spec["storageClassName"] != nil || c.storage == "" {
		return claim
	}
	claim = maps.Clone(claim)
	spec = maps.Clone(spec)
	spec["storageClassName"] = c.storage
	claim["spec"] = spec
	return claim
}
