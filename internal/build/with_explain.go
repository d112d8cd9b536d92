package build

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// warnings are those of a build with the plugins.
func (s *pluginSet) warnings() []string {
	if s == nil {
		return nil
	}
	return s.newer
}

// wanted says where a plugin's module asks for newer modules than the release has.
func (s *pluginSet) wanted(from source) []string {
	has := s.heldBy(from)
	var warnings []string
	for _, m := range s.modules {
		warnings = append(warnings, m.wants(has, slices.Concat(from.Staging, from.Unused))...)
	}
	return warnings
}

// heldBy returns the modules that the release names, with its versions of them.
func (s *pluginSet) heldBy(from source) map[string]string {
	has := map[string]string{}
	for _, r := range from.Required {
		has[r.Path] = r.Version
	}
	for _, p := range from.Pins {
		if p.Version == "" {
			has[p.Path] = p.NewVersion
		}
	}
	for _, path := range slices.Concat(from.Staging, from.Unused) {
		has[path] = s.release.Staging()
	}
	has[kubernetes] = from.Version
	return has
}

// maxWanted is how many newer modules a warning names.
const maxWanted = 4

// wants compares what the module requires with what the release has.
func (m *pluginModule) wants(has map[string]string, staging []string) []string {
	patch, newer := "", map[string]string{}
	for _, r := range m.mod.Require {
		held, found := has[r.Mod.Path]
		if !found || semver.Compare(r.Mod.Version, held) <= 0 {
			continue
		}
		switch {
		case r.Mod.Path == kubernetes:
			patch = r.Mod.Version
		case slices.Contains(staging, r.Mod.Path):
			if patch == "" {
				patch = "v1" + strings.TrimPrefix(r.Mod.Version, "v0")
			}
		case !r.Indirect:
			newer[r.Mod.Path] = r.Mod.Path + " " + r.Mod.Version + " (not " + held + ")"
		}
	}
	var warnings []string
	if patch != "" {
		warnings = append(warnings, fmt.Sprintf("module %s asks for Kubernetes %s; it is compiled against %s, the release that is built", m.place, patch, has[kubernetes]))
	}
	if names := slices.Sorted(maps.Values(newer)); len(names) > 0 {
		more := ""
		if len(names) > maxWanted {
			names, more = names[:maxWanted], fmt.Sprintf(" and %d more", len(names)-maxWanted)
		}
		warnings = append(warnings, fmt.Sprintf("module %s asks for newer modules than the release has: %s%s; the release's are used", m.place, strings.Join(names, ", "), more))
	}
	return warnings
}

// inGenerated is a file of a plugin as the go command names it in the generated module.
var inGenerated = regexp.MustCompile(`(?m)(^|[\s("'])(?:\./)?(pmk-sched|plugins/[0-9]+)/([^\s:]*)`)

// words turns the names of copied files in the output of the go command into
// those that a person knows.
func (s *pluginSet) words(output string) string {
	return inGenerated.ReplaceAllStringFunc(output, func(found string) string {
		match := inGenerated.FindStringSubmatch(found)
		for _, m := range s.modules {
			if m.folder == match[2] {
				return match[1] + m.shown(match[3])
			}
		}
		if s.api != nil && match[2] == generatedAPI {
			return match[1] + s.api.shown(match[3])
		}
		return found
	})
}

// explain completes the error of a build with plugins: with their own file
// names, and with what they ask for that the release does not have.
func (s *pluginSet) explain(err error) error {
	var known *Error
	if s == nil || !errors.As(err, &known) {
		return err
	}
	inPlugin := inGenerated.MatchString(known.Output)
	known.Output = s.words(known.Output)
	if known.Cause == CauseCompile && inPlugin {
		known.Message = "a plugin does not compile against " + cmp.Or(s.against, s.release.String())
		for _, warning := range s.newer {
			known.Try += "; " + warning
		}
	}
	if tooOld := needsNewerGo.FindStringSubmatch(known.Output); tooOld != nil {
		known.Cause = CauseCompile
		known.Message = fmt.Sprintf("%s, which a plugin needs, is for Go %s and %s is compiled with an older one", tooOld[1], tooOld[2], s.release)
		known.Try = "have the plugin's go.mod require an older version of it"
	}
	return err
}

// needsNewerGo is how go 1.21 and later say that a module is too new for them.
var needsNewerGo = regexp.MustCompile(`([^\s]+@[^\s:]+):? (?:requires|module requires) go >= ([0-9.]+)`)

// lookedUp is how the go command says that it goes and looks for a module that
// no go.mod names.
var lookedUp = regexp.MustCompile(`(?m)^go: (?:finding module for package|found) ([^\s]+)`)

// complete refuses a module that imports what its go.mod does not require: the
// go command would take what is newest today, and another tomorrow.
func (s *pluginSet) complete(step, output string) error {
	match := lookedUp.FindStringSubmatch(output)
	if s == nil || match == nil {
		return nil
	}
	return &Error{
		Step: step, Cause: CauseInput, Message: fmt.Sprintf("no go.mod of a plugin requires a module with package %s, which is imported", match[1]),
		Try: "run `go mod tidy` in the plugin's module; a package named with --import has to be of a plugin's module, or of one that it requires",
	}
}
