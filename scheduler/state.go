package scheduler

// State is kept for one pod through one scheduling cycle, from PreFilter to PostBind. All plugins
// share it: begin the key with the plugin's name. Filter and Score must only read it.
type State interface {
	// Read returns what was written under key, and whether there was anything.
	Read(key string) (value interface{}, ok bool)
	// Write keeps value under key. If value is a Cloner, preemption gets a copy of its own for
	// each node it tries; otherwise all of these tries share it.
	Write(key string, value interface{})
	// Delete forgets key.
	Delete(key string)
}

// Cloner is for values in a State that AddPod and RemovePod change.
type Cloner interface {
	// Clone returns a copy that shares nothing changeable with the original.
	Clone() interface{}
}
