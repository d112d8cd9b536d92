package extender

import (
	"encoding/json"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Arguments are the arguments of a policy, undecoded.
type Arguments struct{ raw json.RawMessage }

// NewArguments returns the Arguments in a JSON document.
func NewArguments(document []byte) Arguments { return Arguments{raw: document} }

// UnmarshalJSON implements json.Unmarshaler. The policy decodes the arguments, strictly.
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

// ForPlugin returns the arguments in the form that a plugin's New accepts.
func (a Arguments) ForPlugin() scheduler.Arguments { return scheduler.NewArguments(a.raw) }
