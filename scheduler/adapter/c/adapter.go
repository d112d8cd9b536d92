//go:build pmksched

// Package c binds portable plugins to the scheduling framework of Kubernetes 1.29 to 1.32, where nodes are
// scored by name. How the pieces are put together is told in the package adapter above this one.
package c

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/adapter/host"
)

// Plugin is the framework's plugin.
type Plugin = framework.Plugin

// Factory makes a plugin factory for app.WithPlugin. build puts the plugin together; what it
// returns must have each extension point that the portable plugin has.
func Factory(name string, build func(context.Context, *Host) (Plugin, error)) func(context.Context, runtime.Object, framework.Handle) (Plugin, error) {
	return func(ctx context.Context, object runtime.Object, handle framework.Handle) (Plugin, error) {
		arguments, err := host.Arguments(object)
		if err != nil {
			return nil, fmt.Errorf("plugin %s: %w", name, err)
		}
		h := &Host{Arguments: arguments, handle: handle}
		bound, err := build(ctx, h)
		if err != nil {
			return nil, fmt.Errorf("plugin %s: %w", name, err)
		}
		if err := host.Check(name, h.plugin, bound); err != nil {
			return nil, err
		}
		return bound, nil
	}
}

// Base is the part of a bound plugin that is no extension point.
type Base struct{ plugin scheduler.Plugin }

// Base notes which plugin is being bound.
func (h *Host) Base(p scheduler.Plugin) Base {
	h.plugin = p
	return Base{plugin: p}
}

// Name returns the plugin's name.
func (b Base) Name() string { return b.plugin.Name() }
