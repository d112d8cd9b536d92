package render

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// objectsFile is the file with the objects in a base or a component.
const objectsFile = "objects.yaml"

// kustomization is a Kustomization or a Component.
type kustomization struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Resources  []string `json:"resources,omitempty"`
	Patches    []patch  `json:"patches,omitempty"`
}

type patch struct {
	Path   string  `json:"path,omitempty"`
	Patch  string  `json:"patch,omitempty"`
	Target *target `json:"target,omitempty"`
}

type target struct {
	LabelSelector string `json:"labelSelector"`
}

// Kustomize returns the files for a Kustomize base and a component for each minor, by their paths.
// The base has the content that is equal in all releases, which are in ascending order. With a
// minor's component, `kustomize build` gives the objects that pmk-sched renders for the minor's
// newest patch.
func Kustomize(list []Input) (map[string][]byte, error) {
	if len(list) == 0 {
		return nil, errors.New("write a Kustomize base: no release is given")
	}
	list = newestPatches(list)
	common := shared(list)
	files := map[string][]byte{}
	base := kustomization{APIVersion: "kustomize.config.k8s.io/v1beta1", Kind: "Kustomization",
		Resources: []string{objectsFile}}
	var objects []*unstructured.Unstructured
	for _, o := range list[0].Objects {
		if shared, found := common[identity(o)]; found {
			objects = append(objects, shared)
		}
	}
	if err := writeKustomization(files, "base", base, objects); err != nil {
		return nil, err
	}
	for _, in := range list {
		if err := writeComponent(files, in, common); err != nil {
			return nil, fmt.Errorf("write the component of Kubernetes %s: %w", in.Release.MinorString(), err)
		}
	}
	return files, nil
}

// newestPatches returns the last release of each minor.
func newestPatches(list []Input) []Input {
	var newest []Input
	for i, in := range list {
		if i+1 == len(list) || list[i+1].Release.MinorString() != in.Release.MinorString() {
			newest = append(newest, in)
		}
	}
	return newest
}

// writeComponent adds the files for a minor's component.
func writeComponent(files map[string][]byte, in Input, common map[string]*unstructured.Unstructured) error {
	dir := "components/" + in.Release.MinorString()
	k := kustomization{APIVersion: "kustomize.config.k8s.io/v1alpha1", Kind: "Component"}
	var own []*unstructured.Unstructured
	for _, o := range in.Objects {
		base, found := common[identity(o)]
		if !found {
			own = append(own, o)
			continue
		}
		difference, differs := subtract(withoutRelease(o).Object, base.Object)
		if !differs {
			continue
		}
		name := fmt.Sprintf("%s-%s.yaml", strings.ToLower(o.GetKind()), o.GetName())
		text, err := yaml.Marshal(identified(o, difference))
		if err != nil {
			return err
		}
		files[dir+"/"+name], k.Patches = text, append(k.Patches, patch{Path: name})
	}
	// The target leaves other objects in the user's kustomization alone; the field labels does not.
	selector := labels.Set{ownership.LabelName: ownership.Scheduler, ownership.LabelInstance: in.Name}
	k.Patches = append(k.Patches, patch{
		Patch: fmt.Sprintf("- {op: add, path: /metadata/labels/%s, value: %s}\n",
			strings.ReplaceAll(ownership.LabelRelease, "/", "~1"), in.Release),
		Target: &target{LabelSelector: selector.String()},
	})
	if len(own) > 0 {
		k.Resources = []string{objectsFile}
	}
	return writeKustomization(files, dir, k, own)
}

// writeKustomization adds a kustomization with its objects, in their order.
func writeKustomization(
	files map[string][]byte, dir string, k kustomization, objects []*unstructured.Unstructured,
) (err error) {
	if files[dir+"/kustomization.yaml"], err = yaml.Marshal(k); err != nil || len(objects) == 0 {
		return err
	}
	var documents [][]byte
	for _, o := range objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return err
		}
		documents = append(documents, text)
	}
	files[dir+"/"+objectsFile] = bytes.Join(documents, []byte("---\n"))
	return nil
}

// shared returns the objects that all releases have, by identity, with the fields that are equal in
// all.
func shared(list []Input) map[string]*unstructured.Unstructured {
	common := map[string]*unstructured.Unstructured{}
	for _, o := range list[0].Objects {
		common[identity(o)] = withoutRelease(o)
	}
	for _, in := range list[1:] {
		seen := map[string]bool{}
		for _, o := range in.Objects {
			id := identity(o)
			base, found := common[id]
			if seen[id] = true; !found {
				continue
			}
			base.Object = intersect(base.Object, withoutRelease(o).Object)
		}
		for id := range common {
			if !seen[id] {
				delete(common, id)
			}
		}
	}
	return common
}

// identity is an object's key in a cluster.
func identity(o *unstructured.Unstructured) string {
	return strings.Join([]string{o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName()}, "/")
}

// identified returns the fields of a patch with its object's identity.
func identified(o *unstructured.Unstructured, fields map[string]any) map[string]any {
	patch := &unstructured.Unstructured{Object: fields}
	patch.SetAPIVersion(o.GetAPIVersion())
	patch.SetKind(o.GetKind())
	patch.SetName(o.GetName())
	if namespace := o.GetNamespace(); namespace != "" {
		patch.SetNamespace(namespace)
	}
	return patch.Object
}

// withoutRelease returns a copy of an object without its release label.
func withoutRelease(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	all := o.GetLabels()
	delete(all, ownership.LabelRelease)
	o.SetLabels(all)
	return o
}

// named returns the elements in a list that Kustomize merges by name, and their names.
func named(field string, value any) (elements []map[string]any, names []string) {
	list, _ := value.([]any)
	if !slices.Contains([]string{"containers", "initContainers", "volumes"}, field) || list == nil {
		return nil, nil
	}
	for _, element := range list {
		fields, _ := element.(map[string]any)
		name, _ := fields["name"].(string)
		elements, names = append(elements, fields), append(names, name)
	}
	return elements, names
}
