package scenario

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// completePod completes a workload's pod as its controller does, and returns the object that owns
// it: a Deployment's ReplicaSet. A pod from a manifest has no owner.
func (w *Workload) completePod(kind *snapshot.Kind, o object) object {
	labels := part(w.pod, "metadata", "labels")
	owner := runtime.DeepCopyJSON(kind.Strip(o))
	part(owner, "metadata")["uid"] = newUID(kind.Name, w.Namespace, w.Name)
	switch kind.Name {
	case "Pod":
		w.first = 0
		return nil
	case "Deployment":
		owner = replicaSetOf(owner, labels, w)
	case "StatefulSet":
		w.first = 0
		for _, t := range list(o, "spec", "volumeClaimTemplates") {
			w.claims = append(w.claims, runtime.DeepCopyJSON(asObject(t)))
		}
	case "Job":
		uid := part(owner, "metadata")["uid"]
		labels["job-name"], labels["controller-uid"] = w.Name, uid
		labels["batch.kubernetes.io/job-name"], labels["batch.kubernetes.io/controller-uid"] = w.Name, uid
		if w.indexed = part(o, "spec")["completionMode"] == "Indexed"; w.indexed {
			w.first = 0
		}
	}
	metadata := part(owner, "metadata")
	part(w.pod, "metadata")["ownerReferences"] = []any{object{
		"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"],
		"controller": true,
	}}
	return owner
}

// ownerKind is the kind of the object that completePod returns.
func ownerKind(kind *snapshot.Kind) *snapshot.Kind {
	if kind.Name == "Deployment" {
		kind, _ = snapshot.Find(snapshot.Kinds(), "apps/v1", "ReplicaSet")
	}
	return kind
}

// replicaSetOf returns a Deployment's ReplicaSet, and adds its label to the pods' labels.
func replicaSetOf(deployment, labels object, w *Workload) object {
	const label = "pod-template-hash"
	hash := templateHash(w.pod)
	labels[label] = hash
	name := w.Name + "-" + hash
	w.base = name + "-"
	selector := runtime.DeepCopyJSON(part(deployment, "spec", "selector"))
	if selector == nil {
		selector = object{}
	}
	matching := part(selector, "matchLabels")
	if matching == nil {
		matching = object{}
		selector["matchLabels"] = matching
	}
	matching[label] = hash
	spec := object{"selector": selector}
	if replicas, ok := part(deployment, "spec")["replicas"]; ok {
		spec["replicas"] = replicas
	}
	return object{
		"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": spec,
		"metadata": object{
			"name": name, "namespace": w.Namespace, "uid": newUID("ReplicaSet", w.Namespace,
				name), "labels": runtime.DeepCopyJSON(labels),
			"ownerReferences": []any{object{
				"apiVersion": "apps/v1", "kind": "Deployment", "name": w.Name, "uid": part(deployment,
					"metadata")["uid"], "controller": true,
			}},
		},
	}
}

// templateHash returns a short hash of a pod.
func templateHash(pod object) string {
	text, _ := snapshot.Encode(pod) // decoded JSON can be encoded
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:5])
}

// newUID returns a UID that is always the same for the same object.
func newUID(names ...string) string {
	hash := sha256.New()
	for _, name := range names {
		fmt.Fprintf(hash, "%d %s", len(name), name)
	}
	text := hex.EncodeToString(hash.Sum(nil))
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:32]
}

// Copy returns the pods in a workload's next copy. next counts the pods that were made before.
// Names for which taken returns true, because the snapshot has such a pod, are skipped. after is
// the value of next for the next call. The pods' claims are made from templates.
func (w *Workload) Copy(next int, taken func(key string) bool,
	templates ClaimTemplates) (replicas []Replica, after int) {
	for len(replicas) < w.Replicas {
		name := w.base + strconv.Itoa(w.first+next)
		if w.Kind == "Pod" && next == 0 {
			name = w.Name
		}
		if key := w.Namespace + "/" + name; !taken(key) {
			replicas = append(replicas, w.replica(key, name, w.first+next, templates))
		}
		next++
	}
	return replicas, next
}

// Name returns the pod's namespace and name.
func (r Replica) Name() (namespace, name string) {
	namespace, name, _ = strings.Cut(r.Key, "/")
	return namespace, name
}

// replica returns a pod with its claims.
func (w *Workload) replica(key, name string, number int, templates ClaimTemplates) Replica {
	pod := runtime.DeepCopyJSON(w.pod)
	metadata := part(pod, "metadata")
	metadata["name"], metadata["uid"] = name, newUID("Pod", key)
	r := Replica{Key: key, Pod: pod}
	switch {
	case w.Kind == "StatefulSet":
		labels := part(metadata, "labels")
		labels["statefulset.kubernetes.io/pod-name"], labels["apps.kubernetes.io/pod-index"] = name, strconv.Itoa(number)
		r.Claims = w.setClaims(pod, name)
	case w.indexed:
		part(metadata, "labels")["batch.kubernetes.io/job-completion-index"] = strconv.Itoa(number)
	}
	made, _ := templates.Make(pod, func(string) bool { return false })
	r.Owned = append(ephemeralClaims(pod), made...)
	return r
}

// setClaims returns the claims for a StatefulSet's pod, and adds their volumes to the pod.
func (w *Workload) setClaims(pod object, podName string) []Object {
	var claims []Object
	spec := part(pod, "spec")
	for _, t := range w.claims {
		volume, _, _ := unstructured.NestedString(t, "metadata", "name")
		name := volume + "-" + podName
		claims = append(claims, newClaim(w.Namespace, name, part(t, "metadata"), part(t, "spec")))
		spec["volumes"] = append(list(spec, "volumes"),
			object{"name": volume, "persistentVolumeClaim": object{"claimName": name}})
	}
	return claims
}

// ephemeralClaims returns the claims for a pod's ephemeral volumes, which the pod owns.
func ephemeralClaims(pod object) []Object {
	var claims []Object
	metadata := part(pod, "metadata")
	namespace, _ := metadata["namespace"].(string)
	name, _ := metadata["name"].(string)
	for _, v := range list(pod, "spec", "volumes") {
		volume := asObject(v)
		template := part(volume, "ephemeral", "volumeClaimTemplate")
		volumeName, _ := volume["name"].(string)
		if template == nil {
			continue
		}
		claim := newClaim(namespace, name+"-"+volumeName, nil, part(template, "spec"))
		part(claim.Fields, "metadata")["ownerReferences"] = []any{object{
			"apiVersion": "v1", "kind": "Pod", "name": name, "uid": metadata["uid"], "controller": true,
		}}
		claims = append(claims, claim)
	}
	return claims
}

// newClaim returns a PersistentVolumeClaim with a template's labels and specification.
func newClaim(namespace, name string, metadata, spec object) Object {
	kind, version := snapshot.Find(snapshot.Kinds(), "v1", "PersistentVolumeClaim")
	o := object{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": runtime.DeepCopyJSON(spec),
		"metadata": object{"name": name, "namespace": namespace, "uid": newUID("PersistentVolumeClaim", namespace, name)},
	}
	if labels := part(metadata, "labels"); labels != nil {
		part(o, "metadata")["labels"] = runtime.DeepCopyJSON(labels)
	}
	return Object{Kind: kind, Version: version, Fields: runtime.DeepCopyJSON(kind.Strip(o))}
}
