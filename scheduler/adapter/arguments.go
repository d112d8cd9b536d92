package adapter

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// readArguments returns the plugin's arguments in the configuration. The scheduler passes nil if there
// are none, the raw document, or an object if its type is registered.
func readArguments(object runtime.Object) (scheduler.Arguments, error) {
	switch o := object.(type) {
	case nil:
		return scheduler.Arguments{}, nil
	case *runtime.Unknown:
		if o == nil {
			return scheduler.Arguments{}, nil
		}
		return scheduler.NewArguments(o.Raw), nil
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return scheduler.Arguments{}, fmt.Errorf("read arguments of type %T: %w", object, err)
	}
	return scheduler.NewArguments(raw), nil
}
