// Package samekind is a native plugin of 1.24, which registers arguments of another plugin,
// Coscheduling, as schemes for all plugins of a module do.
package samekind

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Name is the plugin's name in the scheduler's configuration.
const Name = "SameKind"

// SameKind has no extension point.
type SameKind struct{}

// New returns the plugin.
func New(runtime.Object, framework.Handle) (framework.Plugin, error) { return &SameKind{}, nil }

// Name returns the plugin's name.
func (*SameKind) Name() string { return Name }

// CoschedulingArgs are arguments of a plugin Coscheduling that is not the bundled one.
type CoschedulingArgs struct {
	metav1.TypeMeta `json:",inline"`

	PermitWaitingTimeSeconds int64 `json:"permitWaitingTimeSeconds,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (in *CoschedulingArgs) DeepCopyObject() runtime.Object {
	out := *in
	return &out
}

func init() {
	scheme.Scheme.AddKnownTypes(schema.GroupVersion{Group: "kubescheduler.config.k8s.io", Version: "v1beta3"},
		&CoschedulingArgs{})
}
