package networkaware

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// values are the nodes' values. If a node has several objects, the worst value counts.
type values struct {
	settings *settings

	mu      sync.RWMutex
	nodes   map[string]float64
	objects map[string]object            // by namespace/name
	byNode  map[string]map[string]object // node → namespace/name
}

type object struct {
	node  string
	value float64
}

func newValues(s *settings) *values {
	return &values{settings: s, nodes: map[string]float64{}, objects: map[string]object{},
		byNode: map[string]map[string]object{}}
}

// of returns a node's value. It does not allocate.
func (v *values) of(node string) (float64, bool) {
	v.mu.RLock()
	value, ok := v.nodes[node]
	v.mu.RUnlock()
	return value, ok
}

func (v *values) count() int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return len(v.nodes)
}

// set adds or updates an object. An object that cannot be parsed has no value and is an error.
func (v *values) set(u *unstructured.Unstructured) error {
	read, err := v.read(u)
	v.mu.Lock()
	defer v.mu.Unlock()
	key := u.GetNamespace() + "/" + u.GetName()
	v.forget(key)
	if err != nil {
		return err
	}
	v.objects[key] = read
	if v.byNode[read.node] == nil {
		v.byNode[read.node] = map[string]object{}
	}
	v.byNode[read.node][key] = read
	v.worst(read.node)
	return nil
}

func (v *values) read(u *unstructured.Unstructured) (object, error) {
	found, _ := v.settings.nodeKey.find(u.Object)
	node, _ := found.(string)
	if node == "" {
		return object{}, fmt.Errorf("it has no node name at %s", v.settings.NodeKey)
	}
	field, ok := v.settings.field.find(u.Object)
	if !ok {
		return object{}, fmt.Errorf("it has no value at %s", v.settings.Field)
	}
	value, err := number(field)
	if err != nil {
		return object{}, fmt.Errorf("value at %s: %w", v.settings.Field, err)
	}
	return object{node: node, value: value}, nil
}

func (v *values) remove(namespace, name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.forget(namespace + "/" + name)
}

func (v *values) forget(key string) {
	old := v.objects[key] // of no node if there is none
	delete(v.objects, key)
	delete(v.byNode[old.node], key)
	v.worst(old.node)
}

func (v *values) worst(node string) {
	if len(v.byNode[node]) == 0 {
		delete(v.byNode, node)
		delete(v.nodes, node)
		return
	}
	worst, first := 0.0, true
	for _, o := range v.byNode[node] {
		if first || (v.settings.Prefer == PreferLower) == (o.value > worst) {
			worst, first = o.value, false
		}
	}
	v.nodes[node] = worst
}
