package main

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pmk-sched/pmk-sched/versions"
)

const apiextensions = "k8s.io/apiextensions-apiserver"

// gatePackages are the packages whose feature gates kube-scheduler accepts, in the order in which
// they count: pkg/features repeats other modules' gates.
func gatePackages() []string {
	return []string{
		clientGo + "/features", componentBase + "/logs", componentBase + "/logs/api/v1", componentBase + "/metrics/features",
		componentBase + "/zpages/features", apiextensions + "/pkg/features", apiserver + "/pkg/features",
		kubernetes + "/pkg/features",
	}
}

// gates returns the feature gates of kube-scheduler: from 1.31 on the state that the minor release
// itself has, and not an emulated one.
func (s *source) gates() map[string]versions.Gate {
	found := map[string]versions.Gate{}
	for _, pkg := range gatePackages() {
		for _, file := range s.files(pkg) {
			ast.Inspect(file, func(n ast.Node) bool {
				entry, ok := n.(*ast.KeyValueExpr)
				if !ok {
					return true
				}
				value, ok := entry.Value.(*ast.CompositeLit)
				if !ok {
					return true
				}
				if gate, ok := s.gate(pkg, file, value); ok {
					found[s.gateName(pkg, file, entry.Key)] = gate
				}
				return true
			})
		}
	}
	return found
}

// gateName returns a gate's name, which is also its constant's name if the constant's module was
// not downloaded.
func (s *source) gateName(pkg string, file *ast.File, key ast.Expr) string {
	if name := s.value(pkg, file, key); name != "" {
		return name
	}
	if selector, ok := key.(*ast.SelectorExpr); ok {
		return selector.Sel.Name
	}
	return fmt.Sprint(key)
}

// gate reads a FeatureSpec, or the one of several VersionedSpecs that the release uses.
func (s *source) gate(pkg string, file *ast.File, value *ast.CompositeLit) (versions.Gate, bool) {
	if gate, _, ok := s.featureSpec(pkg, file, value); ok {
		return gate, true
	}
	var newest versions.Gate
	last, found := -1, false
	for _, element := range value.Elts {
		spec, ok := element.(*ast.CompositeLit)
		if !ok {
			return versions.Gate{}, false
		}
		gate, minor, ok := s.featureSpec(pkg, file, spec)
		if !ok {
			return versions.Gate{}, false
		}
		found = true
		if last <= minor && minor <= s.release.Minor {
			newest, last = gate, minor
		}
	}
	newest.Exists = found && last >= 0
	return newest, found && newest.Exists
}

// featureSpec reads one FeatureSpec with its minor release, 0 if it has none.
func (s *source) featureSpec(
	pkg string, file *ast.File, value *ast.CompositeLit,
) (gate versions.Gate, minor int, ok bool) {
	for _, element := range value.Elts {
		field, isField := element.(*ast.KeyValueExpr)
		if !isField {
			return gate, 0, false
		}
		switch fmt.Sprint(field.Key) {
		case "Default":
			gate.Default = s.value(pkg, file, field.Value) == "true"
		case "LockToDefault":
			gate.Locked = s.value(pkg, file, field.Value) == "true"
		case "PreRelease":
			ok = true
		case "Version":
			minor = minorOf(field.Value)
		}
	}
	gate.Exists = ok
	return gate, minor, ok
}

// minorOf reads version.MustParse("1.31") and version.MajorMinor(1, 31).
func minorOf(expr ast.Expr) int {
	call, ok := expr.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return 0
	}
	last, ok := call.Args[len(call.Args)-1].(*ast.BasicLit)
	if !ok {
		return 0
	}
	text := strings.Trim(last.Value, `"`)
	minor, err := strconv.Atoi(text[strings.LastIndex(text, ".")+1:])
	if err != nil {
		return 0
	}
	return minor
}

// checkGates compares versions/gates.txt.
func (c *comparison) checkGates() {
	c.begin("feature gates, defaults and locks", "versions/gates.txt (`go run ./hack/facts --gates`)")
	known, read := c.facts.Gates(), c.source.gates()
	for _, name := range unionKeys(known, read) {
		if known[name] != read[name] {
			c.differ("%s %d:%s", name, c.source.release.Minor, read[name])
		}
	}
}

func unionKeys[V any](a, b map[string]V) []string {
	return unique(append(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b))...))
}

const gatesHead = `# The feature gates that the kube-scheduler of each release in releases.txt accepts:
# name and, for each minor release that changed it, MINOR:STATE. Locked gates accept
# no other value; "-" is a gate that is gone. Written by: go run ./hack/facts --gates
`

// writeGates returns versions/gates.txt from every release's sources, oldest first.
func writeGates(all []*source) string {
	lines, states := map[string]string{}, map[string]versions.Gate{}
	for _, s := range all {
		read := s.gates()
		for _, name := range unionKeys(states, read) {
			if states[name] != read[name] {
				lines[name] += fmt.Sprintf(" %d:%s", s.release.Minor, read[name])
			}
			states[name] = read[name]
		}
	}
	var out strings.Builder
	out.WriteString(gatesHead)
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		out.WriteString(name + lines[name] + "\n")
	}
	return out.String()
}
