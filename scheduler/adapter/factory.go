package adapter

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// newPlugin is the plugin factory of all releases: it calls build and checks the result.
func newPlugin(ctx context.Context, name, constant string, build func(context.Context, *Host) (Plugin, error),
	object runtime.Object, h handle) (Plugin, error) {
	arguments, err := readArguments(object)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", name, err)
	}
	host := &Host{Arguments: arguments, name: name, handle: h, log: scheduler.NewLogger(ctx, logSink{})}
	if host.panics, err = newPanics(host.Metrics()); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", name, err)
	}
	bound, err := build(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", name, err)
	}
	if err := check(constant, host.plugin, bound); err != nil {
		return nil, err
	}
	return bound, nil
}

// Base is the part of a bound plugin that is common to all extension points.
type Base struct{ name string }

// Base records which plugin is being bound.
func (h *Host) Base(p scheduler.Plugin) Base {
	h.plugin = p
	h.skips.init(p)
	_, h.normalizes = p.(scheduler.ScoreNormalizer)
	return Base{name: h.name}
}

// Name returns the name by which the plugin is registered.
func (b Base) Name() string { return b.name }

// allPoints embeds the extension points that every release has, to check them against the
// framework's interfaces when this package is compiled.
type allPoints struct {
	Base
	QueueSortPoint
	PreFilterPoint
	FilterPoint
	PostFilterPoint
	PreScorePoint
	ScorePoint
	ReservePoint
	PermitPoint
	PreBindPoint
	BindPoint
	PostBindPoint
}

// readArguments returns the plugin's arguments in the configuration. The scheduler passes nil if
// there are none, the raw document, or an object if its type is registered.
func readArguments(object runtime.Object) (scheduler.Arguments, error) {
	switch o := object.(type) {
	case nil:
		return scheduler.Arguments{}, nil
	case *runtime.Unknown:
		if o == nil {
			return scheduler.Arguments{}, nil
		}
		return scheduler.NewArguments(o.Raw), nil
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return scheduler.Arguments{}, fmt.Errorf("read arguments of type %T: %w", object, err)
	}
	return scheduler.NewArguments(raw), nil
}
