package extender

import (
	"sync"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// state is a scheduler.State of one request.
type state struct {
	mu     sync.RWMutex
	values map[string]interface{}
}

var _ scheduler.State = &state{}

func newState() *state { return &state{values: map[string]interface{}{}} }

// Read implements scheduler.State.
func (s *state) Read(key string) (interface{}, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	value, ok := s.values[key]
	return value, ok
}

// Write implements scheduler.State.
func (s *state) Write(key string, value interface{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[key] = value
}

// Delete implements scheduler.State.
func (s *state) Delete(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.values, key)
}

// clone copies the state for one candidate of preemption.
func (s *state) clone() *state {
	s.mu.RLock()
	defer s.mu.RUnlock()
	same := newState()
	for key, value := range s.values {
		if c, ok := value.(scheduler.Cloner); ok {
			value = c.Clone()
		}
		same.values[key] = value
	}
	return same
}
