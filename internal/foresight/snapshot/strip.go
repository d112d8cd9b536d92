package snapshot

import (
	"fmt"
	"strings"
)

// object is a Kubernetes object as decoded JSON.
type object = map[string]any

// reads returns the tree of a kind's fields, including the fields in every object: its type and the
// metadata that schedulers read.
func reads(f fields) *tree {
	metadata := fields{
		"name": name, "namespace": name, "uid": uid, "labels": labels, "creationTimestamp": plain, "deletionTimestamp": plain,
		"ownerReferences": owners,
	}
	owner := fields{"apiVersion": plain, "kind": plain, "name": name, "uid": uid, "controller": plain}
	every := fields{"apiVersion": plain, "kind": plain}
	for path, t := range f {
		every[path] = t
	}
	return newTree(every.with("metadata", metadata.with("ownerReferences", owner)))
}

// Strip returns a copy of an object, decoded JSON, with only the fields that a scheduler reads. It
// shares the fields' values with the object.
func (k *Kind) Strip(o map[string]any) map[string]any {
	kept, _ := k.fields.copyFields(o).(object)
	if k.Custom {
		for field, value := range o {
			if _, has := kept[field]; !has && value != nil && field != "metadata" {
				kept[field] = value
			}
		}
	}
	given, _ := o["metadata"].(object)
	annotations, _ := given["annotations"].(object)
	read := object{}
	for annotation, value := range annotations {
		text, ok := value.(string)
		if _, named := k.annotations[annotation]; ok && (named || k.numbers != nil && isNumbers(text)) {
			read[annotation] = text
		}
	}
	if len(read) > 0 {
		kept["metadata"].(object)["annotations"] = read
	}
	return kept
}

// isNumbers reports whether an annotation's value is a number, a list of numbers, true or false.
// Plugins write device indices, amounts and times; nothing else that is confidential is.
func isNumbers(text string) bool {
	if text == "true" || text == "false" {
		return true
	}
	const mostDigits = 19 // of an int64
	for number := range strings.SplitSeq(text, ",") {
		number = strings.TrimSpace(number)
		if number == "" || len(number) > mostDigits || strings.Trim(number, "0123456789") != "" {
			return false
		}
	}
	return true
}

// UID returns an object's UID, or "" if it has none.
func UID(o map[string]any) string {
	metadata, _ := o["metadata"].(object)
	text, _ := metadata["uid"].(string)
	return text
}

// Key returns the key by which the objects of a kind are ordered, namespace/name or name, as in
// etcd.
func (k *Kind) Key(o map[string]any) (string, error) {
	metadata, _ := o["metadata"].(object)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	switch {
	case name == "":
		return "", fmt.Errorf("a %s has no metadata.name", k.Name)
	case k.Namespaced && namespace == "":
		return "", fmt.Errorf("%s %s has no metadata.namespace", k.Name, name)
	case k.Namespaced:
		return namespace + "/" + name, nil
	}
	return name, nil
}
