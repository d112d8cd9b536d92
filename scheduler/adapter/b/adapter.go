//go:build pmksched

// Package b binds portable plugins to the scheduling framework of Kubernetes 1.20 to 1.28. It is what is
// compiled with Go 1.15 for 1.20. How the pieces are put together is told in the package adapter above this one.
package b

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
func Factory(name string, build func(context.Context, *Host) (Plugin, error)) func(runtime.Object, framework.Handle) (Plugin, error) {
	return func(object runtime.Object, handle framework.Handle) (Plugin, error) {
		arguments, err := host.Arguments(object)
		if err != nil {
			return nil, fmt.Errorf("plugin %s: %w", name, err)
		}
		h := &Host{Arguments: arguments, handle: handle}
		// These releases give a plugin no context: it lives as long as the process.
		bound, err := build(context.Background(), h)
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
	_, h.preFilters = p.(scheduler.PreFilterPlugin)
	_, h.preScores = p.(scheduler.PreScorePlugin)
	h.filterKey = framework.StateKey(p.Name() + "/pmk-sched/filter")
	h.scoreKey = framework.StateKey(p.Name() + "/pmk-sched/score")
	return Base{plugin: p}
}

// Name returns the plugin's name.
func (b Base) Name() string { return b.plugin.Name() }
