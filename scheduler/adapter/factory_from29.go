package adapter

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
)

// Factory returns a plugin factory for app.WithPlugin. build binds the plugin; its result must have
// each extension point of the portable plugin.
func Factory(name string,
	build func(context.Context, *Host) (Plugin, error)) func(context.Context, runtime.Object, handle) (Plugin, error) {
	return func(ctx context.Context, object runtime.Object, h handle) (Plugin, error) {
		return newPlugin(ctx, name, build, object, h)
	}
}
