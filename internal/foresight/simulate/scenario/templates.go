package scenario

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// ClaimTemplates are ResourceClaimTemplates by namespace and name.
type ClaimTemplates map[string]map[string]any

// Add adds a template.
func (t ClaimTemplates) Add(o map[string]any) {
	namespace, name := NameOf(o)
	t[namespace+"/"+name] = o
}

// podClaim is a claim in a pod's specification.
type podClaim struct {
	// name is its name in the pod. claim is the ResourceClaim's name, if it exists already, and
	// template the name of the template that it is made from, if it is.
	name, claim, template string
}

// podClaims returns a pod's claims (Name in k8s.io/dynamic-resource-allocation/resourceclaim).
func podClaims(pod object) []podClaim {
	made := map[string]string{}
	for _, s := range list(pod, "status", "resourceClaimStatuses") {
		status := asObject(s)
		name, _ := status["name"].(string)
		made[name], _ = status["resourceClaimName"].(string)
	}
	var all []podClaim
	for _, c := range list(pod, "spec", "resourceClaims") {
		claim := asObject(c)
		source := claim
		if inner := part(claim, "source"); inner != nil { // up to 1.30
			source = inner
		}
		p := podClaim{}
		p.name, _ = claim["name"].(string)
		p.template, _ = source["resourceClaimTemplateName"].(string)
		if p.claim, _ = source["resourceClaimName"].(string); p.template != "" {
			p.claim = made[p.name]
		}
		all = append(all, p)
	}
	return all
}

// ClaimsOf returns the names of a pod's ResourceClaims that exist or existed.
func ClaimsOf(pod map[string]any) []string {
	var names []string
	for _, c := range podClaims(pod) {
		if c.claim != "" {
			names = append(names, c.claim)
		}
	}
	return names
}

// HasClaims reports whether a pod has claims for devices.
func HasClaims(pod map[string]any) bool { return len(list(pod, "spec", "resourceClaims")) > 0 }

// Check returns an error if a workload's template is missing. The error is about the user's input
// (package problem).
func (t ClaimTemplates) Check(w *Workload) error {
	for _, c := range podClaims(w.pod) {
		key := w.Namespace + "/" + c.template
		if c.template != "" && t[key] == nil {
			return problem.Invalidf("add its manifest to the files",
				"%s %s/%s: the ResourceClaimTemplate %s is missing in the files and in the snapshot", w.Kind, w.Namespace, w.Name,
				key)
		}
	}
	return nil
}

// Make returns a pod's claims that have to be made from templates because the pod has none or
// because exists returns false for their names, and records their names in the pod's status
// (pkg/controller/resourceclaim, handleClaim). missing are the templates that do not exist.
func (t ClaimTemplates) Make(pod map[string]any, exists func(claim string) bool) (claims []Object, missing []string) {
	namespace, _ := NameOf(pod)
	var statuses []any
	for _, c := range podClaims(pod) {
		if c.template == "" {
			continue
		}
		name := c.claim
		if name == "" || !exists(name) {
			template := t[namespace+"/"+c.template]
			if template == nil {
				missing = append(missing, namespace+"/"+c.template)
				continue
			}
			claim := newDeviceClaim(pod, c.name, template)
			_, name = NameOf(claim.Fields)
			claims = append(claims, claim)
		}
		statuses = append(statuses, object{"name": c.name, "resourceClaimName": name})
	}
	if len(claims) > 0 {
		status := part(pod, "status")
		if status == nil {
			status = object{}
			pod["status"] = status
		}
		status["resourceClaimStatuses"] = statuses
	}
	return claims, missing
}

// newDeviceClaim returns a pod's ResourceClaim that is made from a template. claim is its name in
// the pod.
func newDeviceClaim(pod object, claim string, template object) Object {
	apiVersion, _ := template["apiVersion"].(string)
	kind, version := snapshot.Find(snapshot.Kinds(), apiVersion, "ResourceClaim")
	namespace, podName := NameOf(pod)
	uid := newUID("ResourceClaim", namespace, podName, claim)
	metadata := object{
		"name": claimPrefix(podName, claim) + uid[:5], "namespace": namespace, "uid": uid,
		"annotations": object{snapshot.PodClaimAnnotation: claim},
		"ownerReferences": []any{object{
			"apiVersion": "v1", "kind": "Pod", "name": podName, "uid": part(pod, "metadata")["uid"], "controller": true,
		}},
	}
	if labels := part(template, "spec", "metadata", "labels"); labels != nil {
		metadata["labels"] = maps.Clone(labels)
	}
	o := object{"apiVersion": apiVersion, "kind": "ResourceClaim", "spec": part(template, "spec", "spec"),
		"metadata": metadata}
	return Object{Kind: kind, Version: version, Fields: runtime.DeepCopyJSON(kind.Strip(o))}
}

// claimPrefix returns a claim's name without the five random characters at its end: the pod's name
// and its claim's name, both shortened if they are long.
func claimPrefix(pod, claim string) string {
	const most = 57
	prefix := pod + "-" + claim + "-"
	if length := len(prefix); length > most {
		return pod[:len(pod)*most/length] + "-" + claim[:len(claim)*most/length]
	}
	return prefix
}
