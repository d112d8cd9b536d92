package install

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pmk-sched/pmk-sched/internal/ownership"
	"github.com/pmk-sched/pmk-sched/internal/problem"
)

// identity tells objects apart: version-independent, so that one object read in
// another version is still the same.
type identity struct {
	kind            schema.GroupKind
	namespace, name string
}

func identify(o *unstructured.Unstructured) identity {
	return identity{kind: o.GroupVersionKind().GroupKind(), namespace: o.GetNamespace(), name: o.GetName()}
}

// without returns the objects of list that are not in keep.
func without(list, keep []*unstructured.Unstructured) []*unstructured.Unstructured {
	kept := map[identity]bool{}
	for _, o := range keep {
		kept[identify(o)] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(o *unstructured.Unstructured) bool { return kept[identify(o)] })
}

// SameObjects reports whether two lists hold equal objects, in any order.
func SameObjects(a, b []*unstructured.Unstructured) bool {
	if len(a) != len(b) {
		return false
	}
	byIdentity := map[identity]*unstructured.Unstructured{}
	for _, o := range a {
		byIdentity[identify(o)] = o
	}
	for _, o := range b {
		if other := byIdentity[identify(o)]; other == nil || !equality.Semantic.DeepEqual(other.Object, o.Object) {
			return false
		}
	}
	return true
}

// isConfiguration reports whether an object holds configuration under a name
// that changes with its content: older ones stay as long as a revision that can
// be returned to needs them.
func isConfiguration(o *unstructured.Unstructured) bool {
	return o.GetKind() == "ConfigMap" || o.GetKind() == "Secret"
}

// ownership.LabelRevision marks the Secrets that internal/apply keeps revisions in.
const labelRevision = "pmk-sched.io/revision"

func isRevision(o *unstructured.Unstructured) bool {
	_, marked := o.GetLabels()[ownership.LabelRevision]
	return marked
}

// parts leaves those of the owned objects that are the scheduler itself: no
// revisions, and no namespaces, which are a verification's.
func parts(owned []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(owned), func(o *unstructured.Unstructured) bool {
		return isRevision(o) || o.GetKind() == "Namespace"
	})
}

// NamespacesOf returns the namespaces in which a scheduler's account, its Deployment or
// its revisions are.
func NamespacesOf(owned []*unstructured.Unstructured) []string {
	var found []string
	for _, o := range owned {
		if o.GetKind() == "ServiceAccount" || o.GetKind() == "Deployment" || isRevision(o) {
			found = append(found, o.GetNamespace())
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// onlyIn refuses to deploy a scheduler that is in another namespace: the objects
// at cluster scope are the same for both, and what the plan does not have would be
// taken for something left over.
func onlyIn(namespace, name string, owned []*unstructured.Unstructured) error {
	for _, home := range NamespacesOf(parts(owned)) {
		if home != namespace {
			return problem.Invalidf(fmt.Sprintf("say -n %s, or choose another --name; to move it, uninstall it there first", home),
				"scheduler %s is in namespace %s already", name, home)
		}
	}
	return nil
}

// objectName is Kind/namespace/name, or Kind/name at cluster scope.
func objectName(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetKind() + "/" + o.GetName()
	}
	return o.GetKind() + "/" + o.GetNamespace() + "/" + o.GetName()
}

// AppOf says what the owned objects are: a scheduler's or an extender's; "" where nothing tells.
func AppOf(owned []*unstructured.Unstructured) string {
	for _, o := range owned {
		if app := o.GetLabels()[ownership.LabelName]; app != "" && o.GetKind() != "Namespace" {
			return app
		}
	}
	return ""
}

// app is the value of the label that says what the plan's objects are.
func (p *Plan) app() string {
	if p.Extender != nil {
		return ownership.Extender
	}
	return ownership.Scheduler
}
