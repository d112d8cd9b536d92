package main

import (
	"github.com/pmk-sched/pmk-sched/scheduler/extender"

	plugin0 "github.com/pmk-sched/pmk-sched/scheduler/plugins/blockall"
	plugin1 "github.com/pmk-sched/pmk-sched/scheduler/plugins/costaware"
	plugin2 "github.com/pmk-sched/pmk-sched/scheduler/plugins/elasticquota"
	plugin3 "github.com/pmk-sched/pmk-sched/scheduler/plugins/gpupacking"
	plugin4 "github.com/pmk-sched/pmk-sched/scheduler/plugins/loadaware"
	plugin5 "github.com/pmk-sched/pmk-sched/scheduler/plugins/networkaware"
	plugin6 "github.com/pmk-sched/pmk-sched/scheduler/plugins/numaaware"
	plugin7 "github.com/pmk-sched/pmk-sched/scheduler/plugins/otherschedulers"
	plugin8 "github.com/pmk-sched/pmk-sched/scheduler/plugins/timestamp"
)

// plugins returns the plugins that this program can serve.
func plugins() []extender.Registration {
	return []extender.Registration{
		extender.Register(plugin0.Name, plugin0.New),
		extender.Register(plugin1.Name, plugin1.New),
		extender.Register(plugin2.Name, plugin2.New),
		extender.Register(plugin3.Name, plugin3.New),
		extender.Register(plugin4.Name, plugin4.New),
		extender.Register(plugin5.Name, plugin5.New),
		extender.Register(plugin6.Name, plugin6.New),
		extender.Register(plugin7.Name, plugin7.New),
		extender.Register(plugin8.Name, plugin8.New),
	}
}
