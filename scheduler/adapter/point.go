package adapter

import (
	"fmt"
	"strings"
)

// Point is an extension point that a portable plugin can have.
type Point struct {
	// Name is the framework's: PreFilter. In the configuration it begins with a small letter.
	Name string
	// Struct is the piece of an adapter that a plugin with this point embeds.
	Struct string
	// Methods are what a plugin has if it has this point: all of them, or none.
	Methods []string
	// Optional are methods that add something to the point, and are nothing without it: all, or none.
	Optional []string
	// Since is the first minor of Kubernetes 1 that has the point.
	Since int
	// Configured tells whether the point is a field of a profile's plugins.
	Configured bool
}

// Points returns all extension points in the order in which a pod passes them.
func Points() []Point {
	point := func(name string, optional ...string) Point {
		return Point{Name: name, Struct: name + "Point", Methods: []string{name}, Optional: optional, Since: OldestMinor, Configured: true}
	}
	preEnqueue := point("PreEnqueue")
	preEnqueue.Since = 26
	queueSort := point("QueueSort")
	queueSort.Methods = []string{"Less"}
	reserve := point("Reserve")
	reserve.Methods = []string{"Reserve", "Unreserve"}
	return []Point{
		preEnqueue, queueSort, point("PreFilter", "AddPod", "RemovePod"), point("Filter"), point("PostFilter"), point("PreScore"),
		point("Score", "NormalizeScore"), reserve, point("Permit"), point("PreBind"), point("Bind"), point("PostBind"),
		// 1.20 has no such thing and tries every pod again at every event, which is more than what is asked for.
		{Name: "Events", Struct: "EventsPoint", Methods: []string{"EventsToRegister"}, Since: OldestMinor},
	}
}

// Composition is what a plugin is made of for one minor.
type Composition struct {
	// Structs are the pieces of the adapter to embed beside Base, each made as
	// X{Host: host, Plugin: p}.
	Structs []string
	// Points are the extension points to enable in a configuration that names them one by one, in order.
	Points []string
}

// Compose says what a plugin with the given methods is made of. Methods that are no
// extension point's are passed over. It fails if the minor lacks a point, if a point has
// only some of its methods, and if there is no point at all.
func Compose(minor int, methods []string) (Composition, error) {
	var c Composition
	has := map[string]bool{}
	for _, m := range methods {
		has[m] = true
	}
	for _, p := range Points() {
		is, err := p.in(has)
		if err != nil {
			return Composition{}, err
		}
		// Before 1.24 the framework takes no set of nodes from PreFilter: the adapter enforces it at Filter.
		nodeSet := p.Name == "Filter" && !is && has["PreFilter"] && minor < 24
		switch {
		case !is && !nodeSet:
			continue
		case is && minor < p.Since:
			return Composition{}, fmt.Errorf("there is no extension point %s in Kubernetes 1.%d, only from 1.%d on", p.Name, minor, p.Since)
		case nodeSet:
			c.Structs = append(c.Structs, "NodeSetPoint")
		default:
			c.Structs = append(c.Structs, p.Struct)
		}
		if p.Configured {
			c.Points = append(c.Points, p.Name)
		}
	}
	if len(c.Structs) == 0 {
		return Composition{}, fmt.Errorf("the plugin has no method of an extension point: see the interfaces of package scheduler")
	}
	return c, nil
}

// in tells whether methods are those of the point.
func (p Point) in(has map[string]bool) (bool, error) {
	main, missing := count(has, p.Methods)
	if main && len(missing) > 0 {
		return false, fmt.Errorf("extension point %s: the plugin has no method %s", p.Name, strings.Join(missing, ", "))
	}
	optional, missing := count(has, p.Optional)
	if optional && !main {
		return false, fmt.Errorf("%s is never called: the plugin has no method %s", p.Optional[0], p.Methods[0])
	}
	if optional && len(missing) > 0 {
		return false, fmt.Errorf("extension point %s: the plugin has no method %s", p.Name, strings.Join(missing, ", "))
	}
	return main, nil
}

// count tells whether any of the methods is there, and which are not.
func count(has map[string]bool, methods []string) (some bool, missing []string) {
	for _, m := range methods {
		if has[m] {
			some = true
		} else {
			missing = append(missing, m)
		}
	}
	return some, missing
}
