package adapter

import (
	"fmt"
	"reflect"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

type extensionPoint struct {
	name string
	// required is the point's interface, optional the interface that adds to it, or nil.
	required, optional reflect.Type
}

func extensionPoints() []extensionPoint {
	point := func(name string, required, optional interface{}) extensionPoint {
		p := extensionPoint{name: name, required: reflect.TypeOf(required).Elem()}
		if optional != nil {
			p.optional = reflect.TypeOf(optional).Elem()
		}
		return p
	}
	return []extensionPoint{
		point("PreEnqueue", (*scheduler.PreEnqueuePlugin)(nil), nil),
		point("QueueSort", (*scheduler.QueueSortPlugin)(nil), nil),
		point("PreFilter", (*scheduler.PreFilterPlugin)(nil), (*scheduler.PreFilterExtensions)(nil)),
		point("Filter", (*scheduler.FilterPlugin)(nil), nil),
		point("PostFilter", (*scheduler.PostFilterPlugin)(nil), nil),
		point("PreScore", (*scheduler.PreScorePlugin)(nil), nil),
		point("Score", (*scheduler.ScorePlugin)(nil), (*scheduler.ScoreNormalizer)(nil)),
		point("Reserve", (*scheduler.ReservePlugin)(nil), nil),
		point("Permit", (*scheduler.PermitPlugin)(nil), nil),
		point("PreBind", (*scheduler.PreBindPlugin)(nil), (*scheduler.PreBindPreFlighter)(nil)),
		point("Bind", (*scheduler.BindPlugin)(nil), nil),
		point("PostBind", (*scheduler.PostBindPlugin)(nil), nil),
		point("Events", (*scheduler.EventsPlugin)(nil), nil),
		point("Sign", (*scheduler.SignPlugin)(nil), nil),
	}
}

// check compares a plugin with the struct that binds it: the plugin's name is name, every extension
// point method has the signature in package scheduler, and bound implements all of the plugin's
// extension points.
func check(name string, p scheduler.Plugin, bound interface{}) error {
	// A plugin is a pointer to its own type, and that pointer may be nil.
	if p == nil || reflect.ValueOf(p).IsZero() {
		return fmt.Errorf("plugin %s: New returned neither a plugin nor an error", name)
	}
	if p.Name() != name {
		return fmt.Errorf("plugin %s: its method Name returns %q; it must be the same as the constant Name", name, p.Name())
	}
	for _, point := range extensionPoints() {
		if err := point.check(reflect.TypeOf(p), reflect.TypeOf(bound)); err != nil {
			return fmt.Errorf("plugin %s: %w", name, err)
		}
	}
	return nil
}

// check compares the methods of one extension point.
func (e extensionPoint) check(plugin, bound reflect.Type) error {
	implemented := plugin.Implements(e.required)
	if method := sharedMethod(plugin, e.required); method != "" && !implemented {
		return fmt.Errorf("method %s is never called: the plugin does not implement scheduler.%s", method, e.required.Name())
	}
	if e.optional != nil {
		method := sharedMethod(plugin, e.optional)
		if method != "" && (!implemented || !plugin.Implements(e.optional)) {
			return fmt.Errorf("method %s is never called: the plugin does not implement both scheduler.%s and scheduler.%s",
				method, e.required.Name(), e.optional.Name())
		}
	}
	if implemented && sharedMethod(bound, e.required) == "" {
		return fmt.Errorf(
			"the plugin implements the extension point %s, but this scheduler was built without it: build it again", e.name)
	}
	return nil
}

// sharedMethod returns the first method of an interface, Name aside, that t has in any form.
func sharedMethod(t, of reflect.Type) string {
	for i := 0; i < of.NumMethod(); i++ {
		name := of.Method(i).Name
		if _, found := t.MethodByName(name); found && name != "Name" {
			return name
		}
	}
	return ""
}
