package adapter

func load(s cycleState, key stateKey) (stateData, error) { return s.Read(key) }
func store(s cycleState, key stateKey, data stateData)   { s.Write(key, data) }
func remove(s cycleState, key stateKey)                  { s.Delete(key) }
