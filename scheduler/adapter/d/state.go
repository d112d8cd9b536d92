//go:build pmksched

package d

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// state is one pointer wide, so that making an interface of it allocates nothing.
type state struct{ cycle *framework.CycleState }

func (s state) Read(key string) (interface{}, bool) {
	data, err := s.cycle.Read(framework.StateKey(key))
	if err != nil {
		return nil, false
	}
	if d, ok := data.(*datum); ok {
		return d.value, true
	}
	return data, true
}

func (s state) Write(key string, value interface{}) {
	s.cycle.Write(framework.StateKey(key), &datum{value})
}

func (s state) Delete(key string) { s.cycle.Delete(framework.StateKey(key)) }

// datum is a value that a portable plugin wrote.
type datum struct{ value interface{} }

func (d *datum) Clone() framework.StateData {
	if c, ok := d.value.(scheduler.Cloner); ok {
		return &datum{c.Clone()}
	}
	return d
}
