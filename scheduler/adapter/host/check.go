package host

import (
	"fmt"
	"reflect"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/adapter"
)

// Check compares a plugin with what the framework was given for it: a plugin is called Name in the
// configuration, every method of an extension point has the form that package scheduler asks for, and none is missing from bound.
func Check(name string, p scheduler.Plugin, bound interface{}) error {
	// A plugin is a pointer to its own type, and that is what may be nil.
	if p == nil || reflect.ValueOf(p).IsZero() {
		return fmt.Errorf("plugin %s: New returned neither a plugin nor an error", name)
	}
	if p.Name() != name {
		return fmt.Errorf("plugin %s: its method Name returns %q; it must be the same as the constant Name", name, p.Name())
	}
	for _, point := range adapter.Points() {
		if err := checkPoint(p, bound, point); err != nil {
			return fmt.Errorf("plugin %s: %w", name, err)
		}
	}
	return nil
}

// checkPoint compares the methods of one point.
func checkPoint(p scheduler.Plugin, bound interface{}, point adapter.Point) error {
	is, optional := implements(p, point.Name)
	if method := anyMethod(p, point.Methods); method != "" && !is {
		return fmt.Errorf("it has a method %s, but not all methods of scheduler.%sPlugin as they are written there, so it would never be called", method, point.Name)
	}
	if method := anyMethod(p, point.Optional); method != "" && (!is || !optional) {
		return fmt.Errorf("it has a method %s that would never be called: see scheduler.%sPlugin and what is beside it", method, point.Name)
	}
	if is && anyMethod(bound, point.Methods) == "" {
		return fmt.Errorf("it has the extension point %s, and this scheduler was made without: make it again", point.Name)
	}
	return nil
}

// anyMethod returns the first of the methods that v has.
func anyMethod(v interface{}, methods []string) string {
	for _, m := range methods {
		if _, ok := reflect.TypeOf(v).MethodByName(m); ok {
			return m
		}
	}
	return ""
}

// implements tells whether p has an extension point, and what is optional with it.
func implements(p scheduler.Plugin, point string) (is, optional bool) {
	switch point {
	case "PreEnqueue":
		_, is = p.(scheduler.PreEnqueuePlugin)
	case "QueueSort":
		_, is = p.(scheduler.QueueSortPlugin)
	case "PreFilter":
		_, is = p.(scheduler.PreFilterPlugin)
		_, optional = p.(scheduler.PreFilterExtensions)
	case "Filter":
		_, is = p.(scheduler.FilterPlugin)
	case "PostFilter":
		_, is = p.(scheduler.PostFilterPlugin)
	case "PreScore":
		_, is = p.(scheduler.PreScorePlugin)
	case "Score":
		_, is = p.(scheduler.ScorePlugin)
		_, optional = p.(scheduler.ScoreNormalizer)
	case "Reserve":
		_, is = p.(scheduler.ReservePlugin)
	case "Permit":
		_, is = p.(scheduler.PermitPlugin)
	case "PreBind":
		_, is = p.(scheduler.PreBindPlugin)
	case "Bind":
		_, is = p.(scheduler.BindPlugin)
	case "PostBind":
		_, is = p.(scheduler.PostBindPlugin)
	case "Events":
		_, is = p.(scheduler.EventsPlugin)
	}
	return is, optional
}
