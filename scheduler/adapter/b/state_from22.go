//go:build pmksched

package b

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func load(s *framework.CycleState, key framework.StateKey) (framework.StateData, error) {
	return s.Read(key)
}
func store(s *framework.CycleState, key framework.StateKey, data framework.StateData) {
	s.Write(key, data)
}
func remove(s *framework.CycleState, key framework.StateKey) { s.Delete(key) }
