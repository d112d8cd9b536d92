//go:build pmksched

package e

import (
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// state is one pointer wide, so that making an interface of it allocates nothing.
type state struct{ cycle *framework.CycleState }

func (s state) Read(key string) (interface{}, bool) { return read(s.cycle, key) }
func (s state) Write(key string, value interface{}) {
	s.cycle.Write(fwk.StateKey(key), &datum{value})
}
func (s state) Delete(key string) { s.cycle.Delete(fwk.StateKey(key)) }

// wrappedState is for a CycleState that is not the framework's own.
type wrappedState struct{ cycle fwk.CycleState }

func (s wrappedState) Read(key string) (interface{}, bool) { return read(s.cycle, key) }
func (s wrappedState) Write(key string, value interface{}) {
	s.cycle.Write(fwk.StateKey(key), &datum{value})
}
func (s wrappedState) Delete(key string) { s.cycle.Delete(fwk.StateKey(key)) }

func stateOf(s fwk.CycleState) scheduler.State {
	if own, ok := s.(*framework.CycleState); ok {
		return state{own}
	}
	return wrappedState{s}
}

func read(s fwk.CycleState, key string) (interface{}, bool) {
	data, err := s.Read(fwk.StateKey(key))
	if err != nil {
		return nil, false
	}
	if d, ok := data.(*datum); ok {
		return d.value, true
	}
	return data, true
}

// datum is a value that a portable plugin wrote.
type datum struct{ value interface{} }

func (d *datum) Clone() fwk.StateData {
	if c, ok := d.value.(scheduler.Cloner); ok {
		return &datum{c.Clone()}
	}
	return d
}
