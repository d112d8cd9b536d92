package scenario

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// Renew returns a claim of a snapshot as the controllers leave it when pods are deleted and created
// again. moved reports whether the pod with a UID is one of them. The claim of an ephemeral volume
// has no volume, if waits reports that volumes of its StorageClass wait for a pod. A ResourceClaim
// is not reserved for the pod, and without a reservation it is not allocated
// (pkg/controller/resourceclaim, syncClaim). Other objects are returned unchanged.
func Renew(kind *snapshot.Kind, o map[string]any, moved, waits func(string) bool) map[string]any {
	isMoved := func(reference any) bool {
		uid, _ := asObject(reference)["uid"].(string)
		return uid != "" && moved(uid)
	}
	owned := slices.ContainsFunc(list(o, "metadata", "ownerReferences"), isMoved)
	switch kind.GroupResource() {
	case "persistentvolumeclaims":
		class, _, _ := unstructured.NestedString(o, "spec", "storageClassName")
		if !owned || !waits(class) {
			return o
		}
		o = runtime.DeepCopyJSON(o)
		delete(part(o, "spec"), "volumeName")
		delete(o, "status")
		for _, annotation := range []string{"volume.kubernetes.io/selected-node", "pv.kubernetes.io/bind-completed",
			"pv.kubernetes.io/bound-by-controller"} {
			delete(part(o, "metadata", "annotations"), annotation)
		}
	case "resourceclaims.resource.k8s.io":
		reserved := list(o, "status", "reservedFor")
		left := slices.DeleteFunc(slices.Clone(reserved), isMoved)
		if !owned && len(left) == len(reserved) {
			return o
		}
		o = runtime.DeepCopyJSON(o)
		if len(left) == 0 {
			delete(o, "status")
		} else {
			part(o, "status")["reservedFor"] = left
		}
	}
	return o
}

// claimTemplates are the specifications of ResourceClaimTemplates, by namespace and name.
type claimTemplates map[string]claimTemplate

type claimTemplate struct {
	apiVersion string
	spec       object
}

// add adds the template of a manifest.
func (t claimTemplates) add(o object) {
	namespace, name := NameOf(o)
	apiVersion, _ := o["apiVersion"].(string)
	t[namespace+"/"+name] = claimTemplate{apiVersion: apiVersion, spec: part(o, "spec")}
}

// templatesOf calls do with each claim of a pod that is made from a template.
func templatesOf(pod object, do func(claim, template string)) {
	for _, c := range list(pod, "spec", "resourceClaims") {
		claim := asObject(c)
		name, _ := claim["name"].(string)
		template, _ := claim["resourceClaimTemplateName"].(string)
		if source := part(claim, "source"); source != nil { // up to 1.30
			template, _ = source["resourceClaimTemplateName"].(string)
		}
		if template != "" {
			do(name, template)
		}
	}
}

// check returns an error if a template of a workload is missing.
func (t claimTemplates) check(w *Workload) (err error) {
	templatesOf(w.pod, func(_, template string) {
		key := w.Namespace + "/" + template
		if _, found := t[key]; !found && err == nil {
			err = problem.Invalidf("add its manifest to the files: a snapshot has no templates",
				"%s %s/%s: the ResourceClaimTemplate %s is missing", w.Kind, w.Namespace, w.Name, key)
		}
	})
	return err
}

// claimsOf returns the claims of a pod that are made from templates, and records their names in the
// status of the pod (pkg/controller/resourceclaim, handleClaim).
func (t claimTemplates) claimsOf(pod object) []Object {
	var claims []Object
	var statuses []any
	metadata := part(pod, "metadata")
	namespace, podName := NameOf(pod)
	templatesOf(pod, func(claim, template string) {
		from := t[namespace+"/"+template]
		kind, version := snapshot.Find(snapshot.Kinds(), from.apiVersion, "ResourceClaim")
		uid := newUID("ResourceClaim", namespace, podName, claim)
		name := fmt.Sprintf("%s-%s-%s", podName, claim, uid[:5])
		o := object{
			"apiVersion": from.apiVersion, "kind": "ResourceClaim", "spec": part(from.spec, "spec"),
			"metadata": object{"name": name, "namespace": namespace, "uid": uid, "ownerReferences": []any{object{
				"apiVersion": "v1", "kind": "Pod", "name": podName, "uid": metadata["uid"], "controller": true,
			}}},
		}
		if labels := part(from.spec, "metadata", "labels"); labels != nil {
			part(o, "metadata")["labels"] = labels
		}
		claims = append(claims, Object{Kind: kind, Version: version, Fields: runtime.DeepCopyJSON(kind.Strip(o))})
		statuses = append(statuses, object{"name": claim, "resourceClaimName": name})
	})
	if statuses != nil {
		pod["status"] = object{"resourceClaimStatuses": statuses}
	}
	return claims
}
