package adapter

import "github.com/pmk-sched/pmk-sched/scheduler"

func (r rejections) Status(node string) *scheduler.Status { return toPlugin(r.nodes.Get(node)) }
