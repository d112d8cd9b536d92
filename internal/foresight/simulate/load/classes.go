package load

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/apiserver"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// Classes are the objects that admission applies to new pods and claims: PriorityClasses,
// RuntimeClasses, StorageClasses and LimitRanges. They have to be in the storage when the API
// server starts. Its admission plugins learn of later ones from a watch: a pod that is created a
// moment after its class does not get its values.
type Classes struct {
	values map[string][]byte // by the keys of the storage
}

// NewClasses returns the classes that every cluster has.
func NewClasses() *Classes {
	c := &Classes{values: map[string][]byte{}}
	for name, value := range map[string]int{"system-node-critical": 2000001000, "system-cluster-critical": 2000000000} {
		c.values["priorityclasses/"+name] = fmt.Appendf(nil, `{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass",`+
			`"metadata":{"creationTimestamp":%q,"name":%q,"uid":%q},"value":%s}`, classTime, name, name, strconv.Itoa(value))
	}
	return c
}

// classTime is when classes were created.
const classTime = "2000-01-01T00:00:00Z"

// Add adds an object, or replaces it, if it is a class. The error is about the user's input
// (package problem).
func (c *Classes) Add(kind *snapshot.Kind, o map[string]any) error {
	var into any
	switch kind.GroupResource() {
	case "priorityclasses.scheduling.k8s.io":
		into = &schedulingv1.PriorityClass{}
	case "runtimeclasses.node.k8s.io":
		into = &nodev1.RuntimeClass{}
	case "storageclasses.storage.k8s.io":
		into = &storagev1.StorageClass{}
	case "limitranges":
		into = &corev1.LimitRange{}
	default:
		return nil
	}
	name, err := kind.Key(o)
	if err != nil {
		return problem.Invalidf("", "%w", err)
	}
	key := kind.Resource + "/" + name
	o = runtime.DeepCopyJSON(o)
	metadata, _ := o["metadata"].(map[string]any)
	maps.DeleteFunc(metadata, func(field string, _ any) bool {
		return !slices.Contains([]string{"name", "namespace", "labels", "annotations"}, field)
	})
	metadata["uid"], metadata["creationTimestamp"] = strings.ReplaceAll(key, "/", "-"), classTime
	text, err := snapshot.Encode(o)
	if err == nil {
		// The API server reads no object of a kind if it cannot read one.
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return problem.Invalidf("", "read %s %s: %w", kind.Name, name, err)
	}
	c.values[key] = text
	return nil
}

// Has reports whether there is a PriorityClass or a RuntimeClass with a name.
func (c *Classes) Has(kind, name string) bool {
	resource := map[string]string{"PriorityClass": "priorityclasses/", "RuntimeClass": "runtimeclasses/"}[kind]
	_, has := c.values[resource+name]
	return has
}

// Objects returns the classes as an API server stores them. The prefixes are the resources
// (pkg/kubeapiserver/default_storage_factory_builder.go).
func (c *Classes) Objects() []apiserver.Object {
	var all []apiserver.Object
	for _, key := range slices.Sorted(maps.Keys(c.values)) {
		all = append(all, apiserver.Object{Key: key, Value: c.values[key]})
	}
	return all
}

// Hash identifies the classes.
func (c *Classes) Hash() string {
	hash := sha256.New()
	for _, o := range c.Objects() {
		fmt.Fprintf(hash, "%s %s\n", o.Key, o.Value)
	}
	return hex.EncodeToString(hash.Sum(nil))
}
