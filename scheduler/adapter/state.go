package adapter

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// state implements scheduler.State. It is a single pointer, so that converting it to an interface
// does not allocate.
type state struct{ cycle *framework.CycleState }

func (s state) Read(key string) (interface{}, bool) { return read(s.cycle, key) }
func (s state) Write(key string, value interface{}) { write(s.cycle, key, value) }
func (s state) Delete(key string)                   { remove(s.cycle, stateKey(key)) }

func read(s cycleState, key string) (interface{}, bool) {
	data, err := load(s, stateKey(key))
	if err != nil {
		return nil, false
	}
	if d, ok := data.(*datum); ok {
		return d.value, true
	}
	return data, true
}

func write(s cycleState, key string, value interface{}) { store(s, stateKey(key), &datum{value}) }

// datum is a value that a portable plugin wrote.
type datum struct{ value interface{} }

func (d *datum) Clone() stateData {
	if c, ok := d.value.(scheduler.Cloner); ok {
		return &datum{c.Clone()}
	}
	return d
}
