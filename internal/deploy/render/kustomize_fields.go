package render

import (
	"reflect"
	"slices"
)

// intersect returns the fields that are equal in both objects. Lists are equal or absent, except
// those that Kustomize merges by name.
func intersect(a, b map[string]any) map[string]any {
	both := map[string]any{}
	for field, value := range a {
		other, found := b[field]
		if !found {
			continue
		}
		if reflect.DeepEqual(value, other) {
			both[field] = value
			continue
		}
		if fields, isMap := value.(map[string]any); isMap {
			if otherFields, isMap := other.(map[string]any); isMap {
				both[field] = intersect(fields, otherFields)
			}
			continue
		}
		elements, names := named(field, value)
		others, otherNames := named(field, other)
		if elements == nil || !slices.Equal(names, otherNames) {
			continue
		}
		list := make([]any, len(elements))
		for i := range elements {
			list[i] = intersect(elements[i], others[i])
		}
		both[field] = list
	}
	return both
}

// subtract returns an object's fields that are not in base, a result of [intersect], and whether
// there are any. A list that Kustomize merges by name has all elements, some with the name only:
// Kustomize moves a patch's elements to the front.
func subtract(full, base map[string]any) (fields map[string]any, differs bool) {
	fields = map[string]any{}
	for field, value := range full {
		other, found := base[field]
		if found && reflect.DeepEqual(value, other) {
			continue
		}
		differs = true
		fields[field] = value
		if !found {
			continue
		}
		if inner, isMap := value.(map[string]any); isMap {
			fields[field], _ = subtract(inner, other.(map[string]any))
			continue
		}
		elements, names := named(field, value)
		others, _ := named(field, other)
		var list []any
		for i := range elements {
			element, _ := subtract(elements[i], others[i])
			element["name"] = names[i]
			list = append(list, element)
		}
		fields[field] = list
	}
	return fields, differs
}
