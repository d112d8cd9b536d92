package plugintest

import (
	"sync"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// State is a scheduler.State.
type State struct {
	mu     sync.RWMutex
	values map[string]interface{}
}

var _ scheduler.State = &State{}

// NewState returns the state of a new scheduling cycle.
func NewState() *State { return &State{values: map[string]interface{}{}} }

// Read implements scheduler.State.
func (s *State) Read(key string) (interface{}, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	value, ok := s.values[key]
	return value, ok
}

// Write implements scheduler.State.
func (s *State) Write(key string, value interface{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[key] = value
}

// Delete implements scheduler.State.
func (s *State) Delete(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.values, key)
}

// Clone returns a copy, as preemption creates one before it calls AddPod and RemovePod.
func (s *State) Clone() *State {
	s.mu.RLock()
	defer s.mu.RUnlock()
	clone := NewState()
	for key, value := range s.values {
		if c, ok := value.(scheduler.Cloner); ok {
			value = c.Clone()
		}
		clone.values[key] = value
	}
	return clone
}
