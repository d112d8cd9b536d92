package networkaware

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Values of Arguments.Prefer.
const (
	// PreferLower prefers the node with the lowest value, for example the lowest latency.
	PreferLower = "Lower"
	// PreferHigher prefers the node with the highest value, for example the highest bandwidth.
	PreferHigher = "Higher"
)

// Arguments are the plugin's arguments in the configuration. They name a resource that has an
// object for each node.
type Arguments struct {
	// Group is the resource's API group, for example network.example.com. It is empty for the core
	// group.
	Group string `json:"group,omitempty"`
	// Version is the group's version, for example v1alpha1.
	Version string `json:"version"`
	// Resource is the plural, lower case name, for example networkmetrics.
	Resource string `json:"resource"`
	// Namespace restricts a namespaced resource to one namespace. Empty means all, or a cluster-wide
	// resource.
	Namespace string `json:"namespace,omitempty"`
	// NodeKey is the path of the field that holds the node's name, "metadata.name" by default.
	NodeKey string `json:"nodeKey,omitempty"`
	// Field is the value's path.
	Field string `json:"field"`
	// Prefer is which values are better: Lower (the default) or Higher.
	Prefer string `json:"prefer,omitempty"`
}

type settings struct {
	Arguments
	resource schema.GroupVersionResource
	nodeKey  path
	field    path
}

func decode(args scheduler.Arguments) (*settings, error) {
	s := &settings{Arguments: Arguments{NodeKey: "metadata.name", Prefer: PreferLower}}
	if err := args.Decode(&s.Arguments); err != nil {
		return nil, err
	}
	s.resource = schema.GroupVersionResource{Group: s.Group, Version: s.Version, Resource: s.Resource}
	for _, name := range []struct {
		field, value string
		optional     bool
		check        func(string) []string
	}{
		{"group", s.Group, true, validation.IsDNS1123Subdomain},
		{"version", s.Version, false, validation.IsDNS1035Label},
		{"resource", s.Resource, false, validation.IsDNS1035Label},
		{"namespace", s.Namespace, true, validation.IsDNS1123Label},
	} {
		if name.value == "" {
			if !name.optional {
				return nil,
					fmt.Errorf(
						"%s: is required; group, version and resource name the custom resource, for example network.example.com, "+
							"v1alpha1 and networkmetrics", name.field)
			}
			continue
		}
		if wrong := name.check(name.value); len(wrong) > 0 {
			return nil, fmt.Errorf("%s: %q: %s", name.field, name.value, strings.Join(wrong, "; "))
		}
	}
	if s.Field == "" {
		return nil, fmt.Errorf("field: is required: the path of the value, for example status.latencyMilliseconds")
	}
	var err error
	if s.field, err = parsePath(s.Field); err != nil {
		return nil, fmt.Errorf("field: %w", err)
	}
	if s.nodeKey, err = parsePath(s.NodeKey); err != nil {
		return nil, fmt.Errorf("nodeKey: %w", err)
	}
	if s.Prefer != PreferLower && s.Prefer != PreferHigher {
		return nil, fmt.Errorf("prefer: %q is neither %s nor %s", s.Prefer, PreferLower, PreferHigher)
	}
	return s, nil
}

// name returns the resource as kubectl writes it: plural.group.
func (s *settings) name() string { return s.resource.GroupResource().String() }
