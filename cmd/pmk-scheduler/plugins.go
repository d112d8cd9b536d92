package main

import (
	"context"

	"github.com/pmk-sched/pmk-sched/scheduler/adapter"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	plugin0 "github.com/pmk-sched/pmk-sched/scheduler/plugins/blockall"
	plugin1 "github.com/pmk-sched/pmk-sched/scheduler/plugins/coscheduling"
	plugin2 "github.com/pmk-sched/pmk-sched/scheduler/plugins/costaware"
	plugin3 "github.com/pmk-sched/pmk-sched/scheduler/plugins/elasticquota"
	plugin4 "github.com/pmk-sched/pmk-sched/scheduler/plugins/gpupacking"
	plugin5 "github.com/pmk-sched/pmk-sched/scheduler/plugins/loadaware"
	plugin6 "github.com/pmk-sched/pmk-sched/scheduler/plugins/networkaware"
	plugin7 "github.com/pmk-sched/pmk-sched/scheduler/plugins/numaaware"
	plugin8 "github.com/pmk-sched/pmk-sched/scheduler/plugins/otherschedulers"
	plugin9 "github.com/pmk-sched/pmk-sched/scheduler/plugins/timestamp"
)

// plugins returns the plugins that are compiled in, in addition to the in-tree plugins of the
// release.
func plugins() []app.Option {
	return []app.Option{
		app.WithPlugin(plugin0.Name, adapter.Factory(plugin0.Name, newPortable0)),
		app.WithPlugin(plugin1.Name, adapter.Factory(plugin1.Name, newPortable1)),
		app.WithPlugin(plugin2.Name, adapter.Factory(plugin2.Name, newPortable2)),
		app.WithPlugin(plugin3.Name, adapter.Factory(plugin3.Name, newPortable3)),
		app.WithPlugin(plugin4.Name, adapter.Factory(plugin4.Name, newPortable4)),
		app.WithPlugin(plugin5.Name, adapter.Factory(plugin5.Name, newPortable5)),
		app.WithPlugin(plugin6.Name, adapter.Factory(plugin6.Name, newPortable6)),
		app.WithPlugin(plugin7.Name, adapter.Factory(plugin7.Name, newPortable7)),
		app.WithPlugin(plugin8.Name, adapter.Factory(plugin8.Name, newPortable8)),
		app.WithPlugin(plugin9.Name, adapter.Factory(plugin9.Name, newPortable9)),
	}
}

// Portable0 binds github.com/pmk-sched/pmk-sched/scheduler/plugins/blockall.
type Portable0 struct {
	adapter.Base
	adapter.FilterPoint
	adapter.SignPoint
}

func newPortable0(ctx context.Context, host *adapter.Host) (adapter.Plugin, error) {
	p, err := plugin0.New(ctx, host.Arguments, host)
	if err != nil {
		return nil, err
	}
	return &Portable0{
		Base:        host.Base(p),
		FilterPoint: adapter.FilterPoint{Host: host, Plugin: p},
		SignPoint:   adapter.SignPoint{Host: host, Plugin: p},
	}, nil
}

// Portable1 binds github.com/pmk-sched/pmk-sched/scheduler/plugins/coscheduling.
type Portable1 struct {
	adapter.Base
	adapter.PreFilterPoint
	adapter.PostFilterPoint
	adapter.ReservePoint
	adapter.PermitPoint
	adapter.EventsPoint
	adapter.SignPoint
}

func newPortable1(ctx context.Context, host *adapter.Host) (adapter.Plugin, error) {
	p, err := plugin1.New(ctx, host.Arguments, host)
	if err != nil {
		return nil, err
	}
	return &Portable1{
		Base:            host.Base(p),
		PreFilterPoint:  adapter.PreFilterPoint{Host: host, Plugin: p},
		PostFilterPoint: adapter.PostFilterPoint{Host: host, Plugin: p},
		ReservePoint:    adapter.ReservePoint{Host: host, Plugin: p},
		PermitPoint:     adapter.PermitPoint{Host: host, Plugin: p},
		EventsPoint:     adapter.EventsPoint{Host: host, Plugin: p},
		SignPoint:       adapter.SignPoint{Host: host, Plugin: p},
	}, nil
}

// Portable2 binds github.com/pmk-sched/pmk-sched/scheduler/plugins/costaware.
type Portable2 struct {
	adapter.Base
	adapter.ScorePoint
	adapter.SignPoint
}

func newPortable2(ctx context.Context, host *adapter.Host) (adapter.Plugin, error) {
	p, err := plugin2.New(ctx, host.Arguments, host)
	if err != nil {
		return nil, err
	}
	return &Portable2{
		Base:       host.Base(p),
		ScorePoint: adapter.ScorePoint{Host: host, Plugin: p},
		SignPoint:  adapter.SignPoint{Host: host, Plugin: p},
	}, nil
}

// Portable3 binds github.com/pmk-sched/pmk-sched/scheduler/plugins/elasticquota.
type Portable3 struct {
	adapter.Base
	adapter.PreFilterPoint
	adapter.FilterPoint
	adapter.PostFilterPoint
	adapter.ReservePoint
	adapter.EventsPoint
	adapter.SignPoint
}

func newPortable3(ctx context.Context, host *adapter.Host) (adapter.Plugin, error) {
	p, err := plugin3.New(ctx, host.Arguments, host)
	if err != nil {
		return nil, err
	}
	return &Portable3{
		Base:            host.Base(p),
		PreFilterPoint:  adapter.PreFilterPoint{Host: host, Plugin: p},
		FilterPoint:     adapter.FilterPoint{Host: host, Plugin: p},
		PostFilterPoint: adapter.PostFilterPoint{Host: host, Plugin: p},
		ReservePoint:    adapter.ReservePoint{Host: host, Plugin: p},
		EventsPoint:     adapter.EventsPoint{Host: host, Plugin: p},
		SignPoint:       adapter.SignPoint{Host: host, Plugin: p},
	}, nil
}

// Portable4 binds github.com/pmk-sched/pmk-sched/scheduler/plugins/gpupacking.
type Portable4 struct {
	adapter.Base
	adapter.PreFilterPoint
	adapter.FilterPoint
	adapter.ScorePoint
	adapter.ReservePoint
	adapter.PreBindPoint
	adapter.EventsPoint
	adapter.SignPoint
}

func newPortable4(ctx context.Context, host *adapter.Host) (adapter.Plugin, error) {
	p, err := plugin4.New(ctx, host.Arguments, host)
	if err != nil {
		return nil, err
	}
	return &Portable4{
		Base:           host.Base(p),
		PreFilterPoint: adapter.PreFilterPoint{Host: host, Plugin: p},
		FilterPoint:    adapter.FilterPoint{Host: host, Plugin: p},
		ScorePoint:     adapter.ScorePoint{Host: host, Plugin: p},
		ReservePoint:   adapter.ReservePoint{Host: host, Plugin: p},
		PreBindPoint:   adapter.PreBindPoint{Host: host, Plugin: p},
		EventsPoint:    adapter.EventsPoint{Host: host, Plugin: p},
		SignPoint:      adapter.SignPoint{Host: host, Plugin: p},
	}, nil
}

// Portable5 binds github.com/pmk-sched/pmk-sched/scheduler/plugins/loadaware.
type Portable5 struct {
	adapter.Base
	adapter.FilterPoint
	adapter.ScorePoint
	adapter.ReservePoint
	adapter.PostBindPoint
	adapter.SignPoint
}

func newPortable5(ctx context.Context, host *adapter.Host) (adapter.Plugin, error) {
	p, err := plugin5.New(ctx, host.Arguments, host)
	if err != nil {
		return nil, err
	}
	return &Portable5{
		Base:          host.Base(p),
		FilterPoint:   adapter.FilterPoint{Host: host, Plugin: p},
		ScorePoint:    adapter.ScorePoint{Host: host, Plugin: p},
		ReservePoint:  adapter.ReservePoint{Host: host, Plugin: p},
		PostBindPoint: adapter.PostBindPoint{Host: host, Plugin: p},
		SignPoint:     adapter.SignPoint{Host: host, Plugin: p},
	}, nil
}

// Portable6 binds github.com/pmk-sched/pmk-sched/scheduler/plugins/networkaware.
type Portable6 struct {
	adapter.Base
	adapter.PreScorePoint
	adapter.ScorePoint
	adapter.SignPoint
}

func newPortable6(ctx context.Context, host *adapter.Host) (adapter.Plugin, error) {
	p, err := plugin6.New(ctx, host.Arguments, host)
	if err != nil {
		return nil, err
	}
	return &Portable6{
		Base:          host.Base(p),
		PreScorePoint: adapter.PreScorePoint{Host: host, Plugin: p},
		ScorePoint:    adapter.ScorePoint{Host: host, Plugin: p},
		SignPoint:     adapter.SignPoint{Host: host, Plugin: p},
	}, nil
}

// Portable7 binds github.com/pmk-sched/pmk-sched/scheduler/plugins/numaaware.
type Portable7 struct {
	adapter.Base
	adapter.PreFilterPoint
	adapter.FilterPoint
	adapter.PreScorePoint
	adapter.ScorePoint
	adapter.ReservePoint
	adapter.EventsPoint
	adapter.SignPoint
}

func newPortable7(ctx context.Context, host *adapter.Host) (adapter.Plugin, error) {
	p, err := plugin7.New(ctx, host.Arguments, host)
	if err != nil {
		return nil, err
	}
	return &Portable7{
		Base:           host.Base(p),
		PreFilterPoint: adapter.PreFilterPoint{Host: host, Plugin: p},
		FilterPoint:    adapter.FilterPoint{Host: host, Plugin: p},
		PreScorePoint:  adapter.PreScorePoint{Host: host, Plugin: p},
		ScorePoint:     adapter.ScorePoint{Host: host, Plugin: p},
		ReservePoint:   adapter.ReservePoint{Host: host, Plugin: p},
		EventsPoint:    adapter.EventsPoint{Host: host, Plugin: p},
		SignPoint:      adapter.SignPoint{Host: host, Plugin: p},
	}, nil
}

// Portable8 binds github.com/pmk-sched/pmk-sched/scheduler/plugins/otherschedulers.
type Portable8 struct {
	adapter.Base
	adapter.PreFilterPoint
	adapter.FilterPoint
	adapter.EventsPoint
	adapter.SignPoint
}

func newPortable8(ctx context.Context, host *adapter.Host) (adapter.Plugin, error) {
	p, err := plugin8.New(ctx, host.Arguments, host)
	if err != nil {
		return nil, err
	}
	return &Portable8{
		Base:           host.Base(p),
		PreFilterPoint: adapter.PreFilterPoint{Host: host, Plugin: p},
		FilterPoint:    adapter.FilterPoint{Host: host, Plugin: p},
		EventsPoint:    adapter.EventsPoint{Host: host, Plugin: p},
		SignPoint:      adapter.SignPoint{Host: host, Plugin: p},
	}, nil
}

// Portable9 binds github.com/pmk-sched/pmk-sched/scheduler/plugins/timestamp.
type Portable9 struct {
	adapter.Base
	adapter.PreBindPoint
}

func newPortable9(ctx context.Context, host *adapter.Host) (adapter.Plugin, error) {
	p, err := plugin9.New(ctx, host.Arguments, host)
	if err != nil {
		return nil, err
	}
	return &Portable9{
		Base:         host.Base(p),
		PreBindPoint: adapter.PreBindPoint{Host: host, Plugin: p},
	}, nil
}
