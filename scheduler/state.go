package scheduler

import "sync"

// State holds values for one pod during one scheduling cycle, from PreFilter to PostBind. All
// plugins share it: start the key with the plugin's name. Filter and Score must only read it.
type State interface {
	// Read returns the value of key and reports whether it exists.
	Read(key string) (value interface{}, ok bool)
	// Write stores value under key. If value is a Cloner, preemption uses a separate copy for each
	// node; otherwise the nodes share it.
	Write(key string, value interface{})
	// Delete removes key.
	Delete(key string)
}

// Cloner is for values in a State that AddPod and RemovePod modify.
type Cloner interface {
	// Clone returns a deep copy.
	Clone() interface{}
}

// MapState is a State outside of a scheduler: in an extender or a test.
type MapState struct {
	mu     sync.RWMutex
	values map[string]interface{}
}

var _ State = &MapState{}

// NewMapState returns the state of a new scheduling cycle.
func NewMapState() *MapState { return &MapState{values: map[string]interface{}{}} }

// Read implements State.
func (s *MapState) Read(key string) (interface{}, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	value, ok := s.values[key]
	return value, ok
}

// Write implements State.
func (s *MapState) Write(key string, value interface{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[key] = value
}

// Delete implements State.
func (s *MapState) Delete(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.values, key)
}

// Clone returns a copy, as preemption creates one before it calls AddPod and RemovePod.
func (s *MapState) Clone() *MapState {
	s.mu.RLock()
	defer s.mu.RUnlock()
	clone := NewMapState()
	for key, value := range s.values {
		if c, ok := value.(Cloner); ok {
			value = c.Clone()
		}
		clone.values[key] = value
	}
	return clone
}
