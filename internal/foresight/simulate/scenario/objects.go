package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// Objects are manifests as a cluster's objects. Unlike a snapshot's objects they keep fields that
// only plugins read, such as annotations.
type Objects struct {
	objects []Object
	// Others are the objects that only plugins read, custom resource definitions first.
	Others []map[string]any
	// Bound are the nodes of the pods that have one, by namespace and name.
	Bound map[string]string
	// Notes are manifests without an effect.
	Notes []string
}

// NewObjects adds fields that a user may leave out of manifests: namespaces, the status that a
// kubelet reports for its node. Pods are scheduled by priority, and then in the given order unless
// they have an age. The error is about the user's input (package problem).
func NewObjects(manifests []map[string]any) (*Objects, error) {
	r := &Objects{Bound: map[string]string{}}
	seen := map[string]bool{}
	for i, o := range manifests {
		o = runtime.DeepCopyJSON(o)
		kind, err := r.add(o, i)
		if err != nil {
			return nil, err
		}
		apiVersion, _ := o["apiVersion"].(string)
		group, _, _ := strings.Cut(apiVersion, "/") // v1 is of the core group alone
		key := fmt.Sprintf("%s %s %v/%v", group, kind, part(o, "metadata")["namespace"], part(o, "metadata")["name"])
		if seen[key] {
			return nil, problem.Invalidf("", "%s %v is given twice", kind, part(o, "metadata")["name"])
		}
		seen[key] = true
	}
	kinds := snapshot.Kinds()
	place := func(o Object) int {
		return slices.IndexFunc(kinds, func(k *snapshot.Kind) bool { return k.GroupResource() == o.Kind.GroupResource() })
	}
	slices.SortStableFunc(r.objects, func(a, b Object) int { return place(a) - place(b) })
	slices.SortStableFunc(r.Others, func(a, b map[string]any) int { return definitionsFirst(a) - definitionsFirst(b) })
	return r, nil
}

func definitionsFirst(o object) int {
	if o["kind"] == "CustomResourceDefinition" {
		return 0
	}
	return 1
}

// Each calls do with each object that schedulers read, in the order of [snapshot.Kinds].
func (r *Objects) Each(do func(kind *snapshot.Kind, version string, object map[string]any) error) error {
	for _, o := range r.objects {
		if err := do(o.Kind, o.Version, runtime.DeepCopyJSON(o.Fields)); err != nil {
			return err
		}
	}
	return nil
}

// add adds a manifest and returns its kind. index is its place.
func (r *Objects) add(o object, index int) (string, error) {
	apiVersion, _ := o["apiVersion"].(string)
	kindName, _ := o["kind"].(string)
	metadata := part(o, "metadata")
	name, _ := metadata["name"].(string)
	if apiVersion == "" || kindName == "" || name == "" {
		return "", problem.Invalidf("", "an object has no apiVersion, kind or metadata.name")
	}
	for _, field := range []string{"resourceVersion", "managedFields", "generation", "selfLink"} {
		delete(metadata, field) // as kubectl get prints them, which the API server refuses or ignores
	}
	switch kindName {
	case "Deployment", "DaemonSet", "Job", "CronJob":
		r.Notes = append(r.Notes, fmt.Sprintf("%s %s has no pods: no controller runs", kindName, name))
	}
	kind, version := snapshot.Find(snapshot.Kinds(), apiVersion, kindName)
	if kind == nil || kind.External {
		r.Others = append(r.Others, o)
		return kindName, nil
	}
	if kind.Namespaced && metadata["namespace"] == nil {
		metadata["namespace"] = "default" // as kubectl does
	}
	var err error
	switch kindName {
	case "Node":
		err = completeNode(o, name)
	case "Pod":
		r.addPod(o, index)
	}
	r.objects = append(r.objects, Object{Kind: kind, Version: version, Fields: o})
	return kindName, err
}

// completeNode adds the status that a kubelet reports, except for the resources.
func completeNode(node object, name string) error {
	allocatable := part(node, "status", "allocatable")
	if capacity := part(node, "status", "capacity"); len(allocatable) == 0 && len(capacity) > 0 {
		allocatable = runtime.DeepCopyJSON(capacity) // as the API server does
		part(node, "status")["allocatable"] = allocatable
	}
	if len(allocatable) == 0 {
		return problem.Invalidf("set status.allocatable, for example {cpu: 8, memory: 32Gi}",
			"node %s has no status.allocatable", name)
	}
	if allocatable["pods"] == nil {
		allocatable["pods"] = "110"
	}
	metadata, status := part(node, "metadata"), part(node, "status")
	labels := part(metadata, "labels")
	if labels == nil {
		labels = object{}
		metadata["labels"] = labels
	}
	if labels["kubernetes.io/hostname"] == nil {
		labels["kubernetes.io/hostname"] = name
	}
	if status["capacity"] == nil {
		status["capacity"] = runtime.DeepCopyJSON(allocatable)
	}
	if status["conditions"] == nil {
		status["conditions"] = []any{object{"type": "Ready", "status": "True"}}
	}
	return nil
}

// firstAge is when the first pod in a list was created, before any pod that has an age.
func firstAge() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

func (r *Objects) addPod(pod object, index int) {
	metadata, spec := part(pod, "metadata"), part(pod, "spec")
	if metadata["creationTimestamp"] == nil {
		metadata["creationTimestamp"] = firstAge().Add(time.Duration(index) * time.Second).Format(time.RFC3339)
	}
	if node, _ := spec["nodeName"].(string); node != "" {
		r.Bound[fmt.Sprintf("%v/%v", metadata["namespace"], metadata["name"])] = node
	}
}
