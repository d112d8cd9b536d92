package adapter

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
)

// Factory returns a plugin factory for app.WithPlugin. build binds the plugin; its result must have
// each extension point of the portable plugin. Factory panics if the scheduler cannot decode the
// plugin's arguments: see refuseForeignKind.
func Factory(name string,
	build func(context.Context, *Host) (Plugin, error)) func(context.Context, runtime.Object, handle) (Plugin, error) {
	return Renamed(name, name, build)
}

// Renamed is Factory for a plugin with another constant Name than the name by which it is
// registered.
func Renamed(name, constant string,
	build func(context.Context, *Host) (Plugin, error)) func(context.Context, runtime.Object, handle) (Plugin, error) {
	refuseForeignKind(scheme.Scheme, name)
	return func(ctx context.Context, object runtime.Object, h handle) (Plugin, error) {
		return newPlugin(ctx, name, constant, build, object, h)
	}
}
