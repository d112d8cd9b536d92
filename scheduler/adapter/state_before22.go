//go:build ignore

package adapter

// Before 1.22 the callers of CycleState must lock it.

func load(s cycleState, key stateKey) (stateData, error) {
	s.RLock()
	defer s.RUnlock()
	return s.Read(key)
}

func store(s cycleState, key stateKey, data stateData) {
	s.Lock()
	defer s.Unlock()
	s.Write(key, data)
}

func remove(s cycleState, key stateKey) {
	s.Lock()
	defer s.Unlock()
	s.Delete(key)
}
