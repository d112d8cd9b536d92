package scenario

import (
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// Attachments knows the VolumeAttachments that the attach/detach controller removes: their pods are
// gone from the node. Schedulers from 1.32 on count attachments. Add the objects in a snapshot's
// order.
type Attachments struct {
	// stays and leaves are the claims that pods on a node use, and claims each volume's claim.
	stays, leaves map[nodeClaim]bool
	claims        map[string]string
}

// nodeClaim is a node and a claim, namespace/name.
type nodeClaim struct{ node, claim string }

// NewAttachments returns attachments for no pod.
func NewAttachments() *Attachments {
	return &Attachments{stays: map[nodeClaim]bool{}, leaves: map[nodeClaim]bool{}, claims: map[string]string{}}
}

// AddPod adds a pod from a snapshot, and whether it stays on its node.
func (a *Attachments) AddPod(pod map[string]any, stays bool) {
	node := NodeOf(pod)
	if node == "" || IsFinished(pod) {
		return
	}
	into := a.leaves
	if stays {
		into = a.stays
	}
	namespace, name := NameOf(pod)
	for _, v := range list(pod, "spec", "volumes") {
		volume := asObject(v)
		claim, _ := part(volume, "persistentVolumeClaim")["claimName"].(string)
		if volume["ephemeral"] != nil {
			claim, _ = volume["name"].(string)
			claim = name + "-" + claim
		}
		if claim != "" {
			into[nodeClaim{node, namespace + "/" + claim}] = true
		}
	}
}

// Removes reports whether a VolumeAttachment in the snapshot is removed. Claims and volumes are
// remembered.
func (a *Attachments) Removes(kind *snapshot.Kind, o map[string]any) bool {
	namespace, name := NameOf(o)
	spec := part(o, "spec")
	switch kind.GroupResource() {
	case "persistentvolumeclaims":
		if volume, _ := spec["volumeName"].(string); volume != "" {
			a.claims[volume] = namespace + "/" + name
		}
	case "persistentvolumes":
		if claim := part(spec, "claimRef"); claim != nil {
			claimNamespace, _ := claim["namespace"].(string)
			claimName, _ := claim["name"].(string)
			a.claims[name] = claimNamespace + "/" + claimName
		}
	case "volumeattachments.storage.k8s.io":
		node, _ := spec["nodeName"].(string)
		volume, _ := part(spec, "source")["persistentVolumeName"].(string)
		if volume == "" { // it is in the attachment itself, which no scheduler counts
			return true
		}
		key := nodeClaim{node, a.claims[volume]}
		return a.leaves[key] && !a.stays[key]
	}
	return false
}
