package extender

import (
	"encoding/json"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Arguments are a policy's arguments, kept as they stand in the document.
type Arguments struct{ raw json.RawMessage }

// NewArguments makes Arguments of a JSON document.
func NewArguments(document []byte) Arguments { return Arguments{raw: document} }

// UnmarshalJSON implements json.Unmarshaler. The policy reads the arguments, strictly.
func (a *Arguments) UnmarshalJSON(document []byte) error {
	a.raw = append(a.raw[:0], document...)
	return nil
}

// MarshalJSON implements json.Marshaler.
func (a Arguments) MarshalJSON() ([]byte, error) {
	if len(a.raw) == 0 {
		return []byte("null"), nil
	}
	return a.raw, nil
}

// ForPlugin returns the arguments as a plugin's New takes them.
func (a Arguments) ForPlugin() scheduler.Arguments { return scheduler.NewArguments(a.raw) }
