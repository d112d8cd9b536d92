package deploy

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// identity identifies an object independent of the version in which it was read.
type identity struct {
	kind            schema.GroupKind
	namespace, name string
}

func identify(o *unstructured.Unstructured) identity {
	return identity{kind: o.GroupVersionKind().GroupKind(), namespace: o.GetNamespace(), name: o.GetName()}
}

// without returns the objects in list that are not in keep.
func without(list, keep []*unstructured.Unstructured) []*unstructured.Unstructured {
	kept := map[identity]bool{}
	for _, o := range keep {
		kept[identify(o)] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(o *unstructured.Unstructured) bool { return kept[identify(o)] })
}

// SameObjects reports whether two lists have equal objects, in any order.
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

// isConfiguration reports whether an object holds configuration. Its name changes with its content,
// and older ones stay as long as a revision needs them.
func isConfiguration(o *unstructured.Unstructured) bool {
	return o.GetKind() == "ConfigMap" || o.GetKind() == "Secret"
}

func isRevision(o *unstructured.Unstructured) bool {
	_, marked := o.GetLabels()[ownership.LabelRevision]
	return marked
}

// parts returns the scheduler's own objects, without revisions and without verify's namespaces.
func parts(owned []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(owned), func(o *unstructured.Unstructured) bool {
		return isRevision(o) || o.GetKind() == "Namespace"
	})
}

// NamespacesOf returns the namespaces of a scheduler's ServiceAccount, Deployment and revisions.
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

// onlyIn returns an error if a scheduler with this name is in another namespace: both would share
// the cluster-scoped objects, and a deployment prunes objects that its plan does not have.
func onlyIn(namespace, name string, owned []*unstructured.Unstructured) error {
	for _, other := range NamespacesOf(parts(owned)) {
		if other != namespace {
			return problem.Invalidf(fmt.Sprintf(
				"use -n %s, or choose another --name; to move the scheduler, uninstall it there first", other),
				"scheduler %s is in namespace %s", name, other)
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

// AppOf returns the owned objects' application, a scheduler or an extender, from their labels. It
// returns "" if the label is missing.
func AppOf(owned []*unstructured.Unstructured) string {
	for _, o := range owned {
		if app := o.GetLabels()[ownership.LabelName]; app != "" && o.GetKind() != "Namespace" {
			return app
		}
	}
	return ""
}

// app returns the application of the plan's objects.
func (p *Plan) app() string {
	if p.Extender != nil {
		return ownership.Extender
	}
	return ownership.Scheduler
}
