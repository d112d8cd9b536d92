package scenario

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// Workload creates pods from one template.
type Workload struct {
	// Kind, Namespace and Name are taken from the manifest. Replicas is the number of pods in one
	// copy.
	Kind, Namespace, Name string
	Replicas              int

	pod    object   // without a name
	claims []object // templates, of a StatefulSet
	// base is the pod name prefix, and first the first number. The first pod from a Pod manifest has
	// no number.
	base    string
	first   int
	indexed bool // pods of an indexed Job
}

// Scheduler returns the name of the scheduler of the pods, as the API server completes it.
func (w *Workload) Scheduler() string {
	name, _ := part(w.pod, "spec")["schedulerName"].(string)
	return cmp.Or(name, "default-scheduler")
}

// SetScheduler sets the name of the scheduler of the pods.
func (w *Workload) SetScheduler(name string) { part(w.pod, "spec")["schedulerName"] = name }

// Template returns a pod of the workload, without a name.
func (w *Workload) Template() map[string]any { return runtime.DeepCopyJSON(w.pod) }

// HasClaims reports whether the pods have claims for devices.
func (w *Workload) HasClaims() bool { return HasClaims(w.pod) }

// ClaimTemplates returns the names of the ResourceClaimTemplates of the pods' claims.
func (w *Workload) ClaimTemplates() []string {
	var names []string
	for _, c := range podClaims(w.pod) {
		if c.template != "" {
			names = append(names, c.template)
		}
	}
	return names
}

// Replica is a pod to add. Claims are created before it, and Owned after it, because they refer to
// it.
type Replica struct {
	Key    string // namespace/name
	Pod    map[string]any
	Claims []Object
	Owned  []Object
}

// Add is the scenario in which the pods in manifests are scheduled: count copies, and more until
// one does not fit, at most limit. The snapshot's pending pods are left out. The error is about the
// user's input (package problem).
func Add(manifests []map[string]any, count, limit int) (Scenario, error) {
	s := Running()
	s.Name, s.Count, s.Limit = "add", count, limit
	noted := map[string]bool{}
	var definitions []map[string]any
	for _, o := range manifests {
		if o["kind"] == snapshot.DefinitionKind {
			definitions = append(definitions, o)
		}
	}
	for _, o := range manifests {
		if err := s.addManifest(o, definitions, noted); err != nil {
			return s, err
		}
	}
	pods := 0
	for i := range s.Workloads {
		pods += s.Workloads[i].Replicas
	}
	if pods == 0 {
		return s, problem.Invalidf("",
			"the manifests have no pod to add: expected Pods, Deployments, ReplicaSets, StatefulSets or Jobs")
	}
	slices.Sort(s.Notes)
	return s, nil
}

// addManifest adds a workload, or another object that schedulers or plugins read. Others are
// ignored, with a note.
func (s *Scenario) addManifest(o object, definitions []map[string]any, noted map[string]bool) error {
	apiVersion, _ := o["apiVersion"].(string)
	kindName, _ := o["kind"].(string)
	kind, version := snapshot.Find(snapshot.Kinds(), apiVersion, kindName)
	if kind == nil && snapshot.IsExternal(apiVersion) {
		kind, version = snapshot.ExternalKind(o, definitions)
	}
	if metadata := part(o, "metadata"); metadata != nil && metadata["namespace"] == nil &&
		(kind == nil || kind.Namespaced) {
		metadata["namespace"] = "default" // as kubectl does
	}
	switch apiVersion + " " + kindName {
	case "v1 Pod", "apps/v1 Deployment", "apps/v1 ReplicaSet", "apps/v1 StatefulSet", "batch/v1 Job":
		return s.addWorkload(kind, version, o)
	case "apps/v1 DaemonSet", "batch/v1 CronJob", "v1 ReplicationController":
		return problem.Invalidf("use a Pod, Deployment, ReplicaSet, StatefulSet or Job", "pods of a %s cannot be added",
			kindName)
	}
	if kindName == snapshot.DefinitionKind {
		return nil // one is made
	}
	note := ""
	switch {
	case kind == nil:
		note = "manifests of kind %s are ignored: no scheduler reads them"
	case kind.Custom:
		note = "manifests of kind %s are created for plugins alone: no controller creates pods for them"
	}
	if note != "" && !noted[kindName] {
		s.Notes, noted[kindName] = append(s.Notes, fmt.Sprintf(note, kindName)), true
	}
	if kind == nil {
		return nil
	}
	s.Objects = append(s.Objects, Object{Kind: kind, Version: version, Fields: kind.Strip(o)})
	return nil
}

// addWorkload adds a manifest's workload and its pods' owners.
func (s *Scenario) addWorkload(kind *snapshot.Kind, version string, o object) error {
	w := Workload{Kind: kind.Name, first: 1}
	w.Namespace, _, _ = unstructured.NestedString(o, "metadata", "namespace")
	w.Name, _, _ = unstructured.NestedString(o, "metadata", "name")
	if w.Name == "" {
		return problem.Invalidf("", "a %s has no metadata.name", kind.Name)
	}
	w.base = w.Name + "-"
	invalid := func(format string, args ...any) error {
		return problem.Invalidf("", "%s %s/%s: "+format, append([]any{kind.Name, w.Namespace, w.Name}, args...)...)
	}
	template := o
	if kind.Name != "Pod" {
		template = part(o, "spec", "template")
	}
	if len(list(template, "spec", "containers")) == 0 {
		return invalid("expected a pod with containers")
	}
	if node := part(template, "spec")["nodeName"]; node != nil && node != "" {
		return invalid("spec.nodeName is set, so that no scheduler places it")
	}
	replicas, err := replicasOf(kind.Name, part(o, "spec"))
	if err != nil {
		return invalid("%w", err)
	}
	w.Replicas = replicas
	pods, _ := snapshot.Find(snapshot.Kinds(), "v1", "Pod")
	w.pod = runtime.DeepCopyJSON(pods.Strip(object{
		"apiVersion": "v1", "kind": "Pod", "spec": part(template, "spec"),
		"metadata": object{"namespace": w.Namespace, "labels": labelsOf(template)},
	}))
	if annotations := part(template, "metadata", "annotations"); annotations != nil { // plugins read them
		part(w.pod, "metadata")["annotations"] = runtime.DeepCopyJSON(annotations)
	}
	if selector := part(o, "spec", "selector"); selector != nil &&
		!selects(part(selector, "matchLabels"), labelsOf(template)) {
		return invalid("spec.selector does not match the labels of the template")
	}
	owner := w.completePod(kind, o)
	if owner != nil {
		s.Objects = append(s.Objects, Object{Kind: ownerKind(kind), Version: version, Fields: owner})
	}
	s.Workloads = append(s.Workloads, w)
	return nil
}

// labelsOf returns a template's labels, never nil.
func labelsOf(template object) object {
	if labels := part(template, "metadata", "labels"); labels != nil {
		return labels
	}
	return object{}
}

func selects(selector, labels object) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// replicasOf returns how many pods a controller keeps at the same time.
func replicasOf(kind string, spec object) (int, error) {
	field := func(name string) (int, error) {
		number, ok := spec[name].(json.Number)
		if !ok {
			if spec[name] != nil {
				return 0, fmt.Errorf("invalid spec.%s %v: must be a number", name, spec[name])
			}
			return 1, nil
		}
		n, err := number.Int64()
		if err != nil || n < 0 || n > 100_000 {
			return 0, fmt.Errorf("invalid spec.%s %s: must be between 0 and 100000", name, number)
		}
		return int(n), nil
	}
	switch kind {
	case "Pod":
		return 1, nil
	case "Job":
		parallelism, err := field("parallelism")
		if err != nil || spec["completions"] == nil {
			return parallelism, err
		}
		completions, err := field("completions")
		return min(parallelism, completions), err
	}
	return field("replicas")
}
