package plugins

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// Warnings lists the modules that a plugin's module requires in newer versions than the target
// does.
func (s *Set) Warnings(t Target) []string {
	var warnings []string
	for _, m := range s.modules {
		warnings = append(warnings, m.warnings(t)...)
	}
	return warnings
}

const maxNewer = 4

// warnings compares the module's requirements with the target's versions.
func (m *pluginModule) warnings(t Target) []string {
	patch, newer := "", map[string]string{}
	for _, r := range m.mod.Require {
		fixed, found := t.Versions[r.Mod.Path]
		if !found || semver.Compare(r.Mod.Version, fixed) <= 0 {
			continue
		}
		switch {
		case r.Mod.Path == kubernetes:
			patch = r.Mod.Version
		case slices.Contains(t.Staging, r.Mod.Path):
			if patch == "" {
				patch = "v1" + strings.TrimPrefix(r.Mod.Version, "v0")
			}
		case !r.Indirect:
			newer[r.Mod.Path] = r.Mod.Path + " " + r.Mod.Version + " (not " + fixed + ")"
		}
	}
	var warnings []string
	if patch != "" {
		warnings = append(warnings,
			fmt.Sprintf("module %s requires Kubernetes %s; it is compiled against %s, the release to build", m.shownAs,
				patch, t.Versions[kubernetes]))
	}
	if names := slices.Sorted(maps.Values(newer)); len(names) > 0 {
		more := ""
		if len(names) > maxNewer {
			names, more = names[:maxNewer], fmt.Sprintf(" and %d more", len(names)-maxNewer)
		}
		warnings = append(warnings,
			fmt.Sprintf("module %s requires newer modules than the release: %s%s; the versions of the release are used",
				m.shownAs, strings.Join(names, ", "), more))
	}
	return warnings
}

// inGenerated matches a file of a plugin as the go command names it in the generated module.
var inGenerated = regexp.MustCompile(`(?m)(^|[\s("'])(?:\./)?(pmk-sched|plugins/[0-9]+)/([^\s:]*)`)

// Original replaces the names of copied files in the go command's output with the names that the
// user knows. inPlugins reports whether output contains such names.
func (s *Set) Original(output string) (text string, inPlugins bool) {
	text = inGenerated.ReplaceAllStringFunc(output, func(found string) string {
		match := inGenerated.FindStringSubmatch(found)
		for _, m := range s.modules {
			if m.dir == match[2] {
				return match[1] + m.shown(match[3])
			}
		}
		if s.api != nil && match[2] == APIDir {
			return match[1] + s.api.shown(match[3])
		}
		return found
	})
	return text, inGenerated.MatchString(output)
}
