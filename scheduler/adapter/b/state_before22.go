//go:build pmksched

package b

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// CycleState leaves locking to its users here.

func load(s *framework.CycleState, key framework.StateKey) (framework.StateData, error) {
	s.RLock()
	defer s.RUnlock()
	return s.Read(key)
}

func store(s *framework.CycleState, key framework.StateKey, data framework.StateData) {
	s.Lock()
	defer s.Unlock()
	s.Write(key, data)
}

func remove(s *framework.CycleState, key framework.StateKey) {
	s.Lock()
	defer s.Unlock()
	s.Delete(key)
}
