package kubeapi

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Unstructured returns typed objects as unstructured ones, without the fields that clients do not
// send: status and null values.
func Unstructured(objects ...runtime.Object) ([]*unstructured.Unstructured, error) {
	all := make([]*unstructured.Unstructured, len(objects))
	for i, object := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil, fmt.Errorf("convert %T: %w", object, err)
		}
		delete(content, "status")
		dropNulls(content)
		all[i] = &unstructured.Unstructured{Object: content}
	}
	return all, nil
}

func dropNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, v := range value {
			if v == nil {
				delete(value, key)
				continue
			}
			dropNulls(v)
		}
	case []any:
		for _, v := range value {
			dropNulls(v)
		}
	}
}
