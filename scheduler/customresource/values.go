package customresource

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Values holds a value for each object. Their keys are namespace/name, or name for a cluster-wide
// resource. Set and Delete are for Options.
type Values struct {
	read    func(object *unstructured.Unstructured) (interface{}, error)
	changed func(key string)

	mu     sync.RWMutex
	values map[string]interface{}
}

// NewValues returns values that read returns for objects. changed is called after each change.
func NewValues(read func(*unstructured.Unstructured) (interface{}, error), changed func(key string)) *Values {
	return &Values{read: read, changed: changed, values: map[string]interface{}{}}
}

// Get returns an object's value, nil if it has none.
func (v *Values) Get(key string) interface{} {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.values[key]
}

// Set sets an object's value.
func (v *Values) Set(object *unstructured.Unstructured) error {
	value, err := v.read(object)
	if err != nil {
		return err
	}
	key := keyOf(object.GetNamespace(), object.GetName())
	v.mu.Lock()
	v.values[key] = value
	v.mu.Unlock()
	v.changed(key)
	return nil
}

// Delete removes an object's value.
func (v *Values) Delete(namespace, name string) {
	key := keyOf(namespace, name)
	v.mu.Lock()
	delete(v.values, key)
	v.mu.Unlock()
	v.changed(key)
}

func keyOf(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
