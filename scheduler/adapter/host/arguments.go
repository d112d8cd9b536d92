package host

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Arguments returns what the configuration says about a plugin. The scheduler gives nil when
// it says nothing, the document as it was written, or an object if a type for it is registered.
func Arguments(object runtime.Object) (scheduler.Arguments, error) {
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
