package schema

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
)

var (
	openKey   = regexp.MustCompile(`^( *)(?:- )?[A-Za-z][A-Za-z0-9]*:[ \t\r]*$`)
	bareValue = regexp.MustCompile(`^( *)([^\s:#\-\[\]{}&*!|>'"%@` + "`" + `][^\s:#]*)[ \t\r]*$`)
)

// joinWrapped repairs a value that was wrapped onto the next line without indentation, as happens
// in print and word processors. Such a line can only be a value: it has no key, and the previous
// line has a key and no value. Line numbers are kept.
func joinWrapped(source []byte) ([]byte, []Note) {
	lines := strings.Split(string(source), "\n")
	var notes []Note
	for i := 1; i < len(lines); i++ {
		key, value := openKey.FindStringSubmatch(lines[i-1]), bareValue.FindStringSubmatch(lines[i])
		if key == nil || value == nil || len(value[1]) > len(key[1]) {
			continue
		}
		lines[i-1] = strings.TrimRight(lines[i-1], " \t\r") + " " + value[2]
		lines[i] = ""
		notes = append(notes, Note{Line: i + 1, Column: len(value[1]) + 1,
			Message: fmt.Sprintf("%s is wrapped; read as the value of line %d", value[2], i)})
	}
	return []byte(strings.Join(lines, "\n")), notes
}

// repair moves misplaced fields to the only place where they fit, with a note. Fields that fit in
// several places are left for checkObject to report.
func repair(root *yaml.Node) []Note {
	var notes []Note
	note := func(key *yaml.Node, format string, args ...any) {
		notes = append(notes, Note{Line: key.Line, Column: key.Column, Message: fmt.Sprintf(format, args...)})
	}
	repairProfiles(root, note)
	for _, p := range node.Items(root, "profiles") {
		repairPlugins(node.Get(p, "plugins"), note)
	}
	return notes
}

type noteFunc func(key *yaml.Node, format string, args ...any)

// repairProfiles moves plugins and pluginConfig from the top level into the profile if there is
// only one.
func repairProfiles(root *yaml.Node, note noteFunc) {
	profiles := node.Get(root, "profiles")
	if len(node.Items(profiles)) != 1 || !node.IsMapping(profiles.Content[0]) {
		return
	}
	only := profiles.Content[0]
	for _, name := range []string{"plugins", "pluginConfig"} {
		if key, _ := node.Lookup(root, name); key == nil || node.Get(only, name) != nil {
			continue
		}
		key, value := node.Remove(root, name)
		only.Content = append(only.Content, key, value)
		note(key, "%s moved from the top level into the only profile", name)
	}
}

// repairPlugins moves enabled, disabled and weight from next to an empty extension point into it,
// if only one is empty; and a weight from next to the list of enabled plugins into the only plugin
// in that list.
func repairPlugins(plugins *yaml.Node, note noteFunc) {
	if !node.IsMapping(plugins) {
		return
	}
	var empty []*yaml.Node
	for i := 0; i+1 < len(plugins.Content); i += 2 {
		if node.IsNull(plugins.Content[i+1]) {
			empty = append(empty, plugins.Content[i])
		}
	}
	if len(empty) == 1 && (node.Get(plugins, "enabled") != nil || node.Get(plugins, "disabled") != nil) {
		set := node.Child(plugins, empty[0].Value)
		for _, name := range []string{"disabled", "enabled", "weight"} {
			if key, value := node.Remove(plugins, name); key != nil {
				set.Content = append(set.Content, key, value)
				note(key, "%s moved below %s, which was empty", name, empty[0].Value)
			}
		}
	}
	for i := 0; i+1 < len(plugins.Content); i += 2 {
		repairWeight(plugins.Content[i+1], note)
	}
}

func repairWeight(set *yaml.Node, note noteFunc) {
	enabled := node.Items(set, "enabled")
	if len(enabled) != 1 || !node.IsMapping(enabled[0]) || node.Get(enabled[0], "weight") != nil {
		return
	}
	if key, value := node.Remove(set, "weight"); key != nil {
		enabled[0].Content = append(enabled[0].Content, key, value)
		note(key, "weight moved to %s, the only enabled plugin", node.Text(enabled[0], "name"))
	}
}
