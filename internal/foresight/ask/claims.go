package ask

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/readonly"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// claimKind is the kind of a claim for devices, and claims its resource.
const (
	claimKind = "ResourceClaim"
	claims    = "resourceclaims.resource.k8s.io"
)

var deviceClaimPath = regexp.MustCompile(`^/apis/resource.k8s.io/[^/]+/namespaces/([^/]+)/resourceclaims/([^/]+)(/status)?$`)

// claimTemplates returns the templates of the claims of a question's pods, from the question or the
// cluster. The error is about the user's input (package problem) if there is none, or if the
// scheduler reads no claims.
func (v *view) claimTemplates(ctx context.Context, s *scenario.Scenario) (scenario.ClaimTemplates, error) {
	templates := scenario.ClaimTemplates{}
	for _, o := range s.Objects {
		if o.Kind.Name == "ResourceClaimTemplate" {
			templates.Add(o.Fields)
		}
	}
	for i := range s.Workloads {
		w := &s.Workloads[i]
		if !w.HasClaims() {
			continue
		}
		v.mu.Lock()
		path, ok := v.pathOf(claims)
		v.mu.Unlock()
		if !ok {
			return nil, problem.Invalidf("", "%s %s/%s has resourceClaims, which the scheduler does not read", w.Kind, w.Namespace,
				w.Name)
		}
		for _, name := range w.ClaimTemplates() {
			if templates[w.Namespace+"/"+name] != nil {
				continue
			}
			found, err := v.readObject(ctx, "/apis/"+apiVersionOf(path)+"/namespaces/"+url.PathEscape(w.Namespace)+
				"/resourceclaimtemplates/"+url.PathEscape(name))
			if err != nil {
				return nil, err
			}
			if found == nil {
				return nil, problem.Invalidf("add its manifest", "%s %s/%s: there is no ResourceClaimTemplate %s in the namespace",
					w.Kind, w.Namespace, w.Name, name)
			}
			templates.Add(found)
		}
	}
	return templates, nil
}

// completeDeviceClaim returns a ResourceClaim with the defaults of the API server for its requests
// (pkg/apis/resource/v1/defaults.go).
func completeDeviceClaim(claim object) object {
	claim = runtime.DeepCopyJSON(claim)
	requests, _ := child(child(claim, "spec"), "devices")["requests"].([]any)
	for _, one := range requests {
		request, _ := one.(object)
		alternatives, _ := request["firstAvailable"].([]any)
		switch exactly := child(request, "exactly"); {
		case exactly != nil:
			completeRequest(exactly)
		case len(alternatives) == 0: // up to v1beta1
			completeRequest(request)
		}
		for _, alternative := range alternatives {
			if fields, ok := alternative.(object); ok {
				completeRequest(fields)
			}
		}
	}
	return claim
}

func completeRequest(request object) {
	const exactCount = "ExactCount"
	if text(request, "allocationMode") == "" {
		request["allocationMode"] = exactCount
	}
	if request["allocationMode"] == exactCount && request["count"] == nil {
		request["count"] = int64(1)
	}
	tolerations, _ := request["tolerations"].([]any)
	for _, one := range tolerations {
		if toleration, ok := one.(object); ok && text(toleration, "operator") == "" {
			toleration["operator"] = "Equal"
		}
	}
}

// checkClaims returns an error if a pod has a claim that is not part of the question, because the
// scheduler would not forget that it got devices, or if a claim has another version than those that
// the scheduler reads, whose fields differ.
func (i *inquiry) checkClaims() error {
	i.v.mu.Lock()
	path, _ := i.v.pathOf(claims)
	i.v.mu.Unlock()
	own := map[string]bool{}
	for _, o := range i.built.others {
		if o.Kind.Name != claimKind {
			continue
		}
		namespace, name := scenario.NameOf(o.Fields)
		own[namespace+"/"+name] = true
		if given, read := snapshot.APIVersion(o.Kind.Group, o.Version), apiVersionOf(path); given != read {
			return problem.Invalidf("write it in "+read, "ResourceClaim %s/%s has the version %s: the scheduler reads %s", namespace,
				name, given, read)
		}
	}
	for _, pod := range slices.Sorted(maps.Keys(i.built.uses)) {
		namespace, _, _ := strings.Cut(pod, "/")
		for _, name := range i.built.uses[pod] {
			if !own[namespace+"/"+name] {
				return problem.Invalidf("use `pmk-sched simulate add`, or a ResourceClaimTemplate",
					"pod %s uses the ResourceClaim %s, which is not part of the question", pod, name)
			}
		}
	}
	return nil
}

// owned returns objects with the UIDs of their owners among the pods.
func (t *trial) owned(others []scenario.Object) []scenario.Object {
	pods := map[string]*askedPod{}
	for _, p := range t.pods {
		pods[p.key] = p
	}
	all := slices.Clone(others)
	for i := range all {
		metadata := child(all[i].Fields, "metadata")
		references, _ := metadata["ownerReferences"].([]any)
		if len(references) == 0 {
			continue
		}
		reference, _ := references[0].(object)
		owner := pods[text(metadata, "namespace")+"/"+text(reference, "name")]
		if owner == nil || text(reference, "kind") != "Pod" {
			continue
		}
		owner.owns = true
		reference, metadata = maps.Clone(reference), maps.Clone(metadata)
		reference["uid"] = owner.uid
		metadata["ownerReferences"] = []any{reference}
		all[i].Fields = maps.Clone(all[i].Fields)
		all[i].Fields["metadata"] = metadata
	}
	return all
}

// patchClaim answers a patch of a question's claim with the claim as the scheduler has got it.
func (v *view) patchClaim(w http.ResponseWriter, path string) bool {
	found := deviceClaimPath.FindStringSubmatch(path)
	if found == nil {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.asked == nil || v.asked.claims[found[1]+"/"+found[2]] == nil {
		return false
	}
	watched, ok := v.pathOf(claims)
	if !ok {
		return false
	}
	shown := v.stamped(watched, v.asked.claims[found[1]+"/"+found[2]])
	shown["kind"] = claimKind
	readonly.Respond(w, http.StatusOK, shown)
	return true
}

// noteDevices notes the devices that the scheduler gives a claim. If another claim of the question
// has one of them, the decisions do not count: schedulers up to 1.35 sometimes do that when they
// bind a pod while they place another one (kubernetes#133602).
func (v *view) noteDevices(path string, body []byte) {
	found := deviceClaimPath.FindStringSubmatch(path)
	claim := found[1] + "/" + found[2]
	written, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return // of a version whose devices are not known
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(written)
	if err != nil {
		return // the same
	}
	results, _ := child(child(child(fields, "status"), "allocation"), "devices")["results"].([]any)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.asked == nil || v.asked.ending {
		return
	}
	for _, one := range results {
		result, _ := one.(object)
		if result["adminAccess"] == true || result["shareID"] != nil {
			continue // not for this claim alone
		}
		device := text(result, "driver") + "/" + text(result, "pool") + "/" + text(result, "device")
		if other := v.asked.devices[device]; other != "" && other != claim {
			v.asked.disturbed = "the scheduler gave two claims the device " + device
			v.asked.note()
		}
		v.asked.devices[device] = claim
	}
}
