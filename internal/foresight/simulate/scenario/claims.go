package scenario

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// Renewal describes the changes to a snapshot's pods before its claims are created.
type Renewal struct {
	// Moved reports whether the pod with a UID is deleted and created again, and Ended whether it is
	// finished.
	Moved, Ended func(uid string) bool
	// Waits reports whether volumes of a StorageClass wait for a pod.
	Waits func(class string) bool
	// Consumers are the running pods that use a ResourceClaim, by its namespace and name.
	Consumers map[string][]Consumer
}

// Consumer is a pod that uses a ResourceClaim.
type Consumer struct{ Name, UID string }

// Claim returns a snapshot's claim as the controllers leave it, or nil if they delete it. If a pod
// is created again, the claim for its ephemeral volume has no volume if its class waits for a pod.
// Other objects are returned unchanged.
func (r Renewal) Claim(kind *snapshot.Kind, o map[string]any) map[string]any {
	switch kind.GroupResource() {
	case "persistentvolumeclaims":
		class, _, _ := unstructured.NestedString(o, "spec", "storageClassName")
		if !ownedBy(o, r.Moved) || !r.Waits(class) {
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
		return r.devices(o)
	}
	return o
}

// extendedClaim is the annotation on a claim that a scheduler made for extended resources
// (ExtendedResourceClaimAnnotation in k8s.io/api/resource/v1).
const extendedClaim = "resource.kubernetes.io/extended-resource-claim"

// mostConsumers limits the reservations for a ResourceClaim (ResourceClaimReservedForMaxSize in
// k8s.io/api/resource/v1).
const mostConsumers = 256

// devices returns a ResourceClaim without reservations for pods that do not run any more, and with
// reservations for running pods if it is allocated. It loses its allocation with its last
// reservation (pkg/controller/resourceclaim, syncPod and syncClaim). The claim that was made for a
// finished pod, or by the scheduler for a pod that is created again, is deleted.
func (r Renewal) devices(o object) object {
	if ownedBy(o, r.Ended) || ownedBy(o, r.Moved) && part(o, "metadata", "annotations")[extendedClaim] != nil {
		return nil
	}
	given := list(o, "status", "reservedFor")
	reserved := slices.DeleteFunc(slices.Clone(given), func(reference any) bool {
		uid := uidOf(reference)
		return uid != "" && (r.Moved(uid) || r.Ended(uid))
	})
	changed := len(reserved) < len(given)
	if ownedBy(o, r.Moved) || changed && len(reserved) == 0 {
		o = runtime.DeepCopyJSON(o)
		delete(o, "status")
		return o
	}
	if part(o, "status", "allocation") != nil {
		namespace, name := NameOf(o)
		for _, pod := range r.Consumers[namespace+"/"+name] {
			has := slices.ContainsFunc(reserved, func(reference any) bool { return uidOf(reference) == pod.UID })
			if has || len(reserved) >= mostConsumers {
				continue
			}
			reserved, changed = append(reserved, object{"resource": "pods", "name": pod.Name, "uid": pod.UID}), true
		}
	}
	if changed {
		o = runtime.DeepCopyJSON(o)
		part(o, "status")["reservedFor"] = reserved
	}
	return o
}

// ownedBy reports whether an object's owner is one of the pods.
func ownedBy(o object, pod func(uid string) bool) bool {
	return slices.ContainsFunc(list(o, "metadata", "ownerReferences"), func(reference any) bool {
		uid := uidOf(reference)
		return uid != "" && pod(uid)
	})
}

func uidOf(reference any) string {
	uid, _ := asObject(reference)["uid"].(string)
	return uid
}
