// This file selects a scheduler's source for portable plugins: the files of packages scheduler and
// scheduler/adapter for a release, and the scheduler/adapter structs that each plugin embeds.

package plugins

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pmk-sched/pmk-sched/versions"
)

// The minors of Kubernetes 1 that scheduler/adapter supports.
const (
	OldestMinor = 20
	NewestMinor = 37
)

// AdapterFiles returns the names of Go files that are for a minor, without tests. x_from24.go is
// for 1.24 and later, x_before24.go for earlier minors, x_from24_before30.go for 1.24 to 1.29.
func AdapterFiles(minor int, names []string) []string {
	var selected []string
	for _, name := range names {
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") &&
			isFor(minor, strings.TrimSuffix(name, ".go")) {
			selected = append(selected, name)
		}
	}
	return selected
}

// isFor evaluates the suffixes of a file name.
func isFor(minor int, name string) bool {
	for _, suffix := range strings.Split(name, "_")[1:] {
		if from, ok := bound(suffix, "from"); ok && minor < from {
			return false
		}
		if before, ok := bound(suffix, "before"); ok && minor >= before {
			return false
		}
	}
	return true
}

func bound(suffix, keyword string) (minor int, ok bool) {
	number, ok := strings.CutPrefix(suffix, keyword)
	minor, err := strconv.Atoi(number)
	return minor, ok && err == nil
}

// otherRelease is the first line of a file that does not compile with the release in this project's
// go.mod.
const otherRelease = "//go:build ignore\n\n"

// AdapterSource returns a file's source without the constraint that keeps it out of this project's
// build.
func AdapterSource(file []byte) []byte {
	return []byte(strings.TrimPrefix(string(file), otherRelease))
}

// Point is an extension point that a portable plugin can implement.
type Point struct {
	// Name is the framework's name: PreFilter. In the configuration it begins with a small letter.
	Name string
	// Struct is the struct of scheduler/adapter that a plugin with this point embeds.
	Struct string
	// Methods are the extension point's methods: a plugin has all of them or none.
	Methods []string
	// Optional are methods that add to the point: a plugin has all of them or none.
	Optional []string
	// Since is the first minor of Kubernetes 1 with the extension point.
	Since int
	// Configured reports whether the point is a field of a profile's plugins.
	Configured bool
}

// Points returns all extension points in the order in which a pod passes them.
func Points() []Point {
	point := func(name string, optional ...string) Point {
		return Point{Name: name, Struct: name + "Point", Methods: []string{name}, Optional: optional,
			Since: OldestMinor, Configured: true}
	}
	preEnqueue := point("PreEnqueue")
	preEnqueue.Since = 26
	queueSort := point("QueueSort")
	queueSort.Methods = []string{"Less"}
	reserve := point("Reserve")
	reserve.Methods = []string{"Reserve", "Unreserve"}
	return []Point{
		preEnqueue, queueSort, point("PreFilter", "AddPod", "RemovePod"), point("Filter"), point("PostFilter"),
		point("PreScore"), point("Score", "NormalizeScore"), reserve, point("Permit"),
		point("PreBind", "PreBindPreFlight"), point("Bind"), point("PostBind"),
		// 1.20 does not have it, but retries every pod after every event, which includes the events
		// that a plugin names.
		{Name: "Events", Struct: "EventsPoint", Methods: []string{"EventsToRegister"}, Since: OldestMinor},
		// The framework has it from 1.35 on. Earlier releases compute the results of each pod, so
		// that they do not need it.
		{Name: "Sign", Struct: "SignPoint", Methods: []string{"Sign"}, Since: OldestMinor},
	}
}

// Composition is the adapter structs of a plugin for one minor.
type Composition struct {
	// Structs are the structs of scheduler/adapter to embed next to Base, each initialized as
	// X{Host: host, Plugin: p}.
	Structs []string
	// Points are the extension points to enable in a configuration that lists them one by one, in
	// order.
	Points []string
}

// Compose returns the composition of a plugin with the given methods. It ignores methods that no
// extension point contains. It is an error if the minor lacks an extension point, if the plugin has
// only some of an extension point's methods, or if it has none at all.
func Compose(minor int, methods []string) (Composition, error) {
	var c Composition
	preFilterNodes := versions.Release{Major: 1, Minor: minor}.Rules().PreFilterNodes
	has := map[string]bool{}
	for _, m := range methods {
		has[m] = true
	}
	for _, p := range Points() {
		implemented, err := p.implementedBy(has)
		if err != nil {
			return Composition{}, err
		}
		// Where PreFilter cannot return a set of nodes, the adapter enforces it at Filter.
		nodeSet := p.Name == "Filter" && !implemented && has["PreFilter"] && !preFilterNodes
		switch {
		case !implemented && !nodeSet:
			continue
		case implemented && minor < p.Since:
			return Composition{}, fmt.Errorf("extension point %s is not in Kubernetes 1.%d: it needs 1.%d or newer",
				p.Name, minor, p.Since)
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
		return Composition{}, fmt.Errorf("the plugin implements no extension point: see the interfaces of package scheduler")
	}
	return c, nil
}

func (p Point) implementedBy(has map[string]bool) (bool, error) {
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

// count reports whether any of the methods exists, and returns the missing methods.
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
