package scheduler

// State holds values for one pod during one scheduling cycle, from PreFilter to PostBind. All plugins
// share it: start the key with the plugin's name. Filter and Score must only read it.
type State interface {
	// Read returns the value of key and reports whether it exists.
	Read(key string) (value interface{}, ok bool)
	// Write stores value under key. If value is a Cloner, preemption uses a separate copy for each node;
	// otherwise the nodes share it.
	Write(key string, value interface{})
	// Delete removes key.
	Delete(key string)
}

// Cloner is for values in a State that AddPod and RemovePod modify.
type Cloner interface {
	// Clone returns a deep copy.
	Clone() interface{}
}
