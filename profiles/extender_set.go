package profiles

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/versions"
)

// SetExtenders takes the extenders at the addresses drop out of a configuration that was rendered for the release, and adds
// others after those that are left. Everything else stays as it is, so that what was added and is dropped again leaves the bytes
// from before. What is wrong with the extenders is an [*Error], what may not be meant a note.
func SetExtenders(configuration []byte, release versions.Release, drop []string, add []Extender) ([]byte, []Note, error) {
	root, problem := decode(configuration)
	if problem != nil {
		return nil, nil, problems{*problem}.err("configuration")
	}
	if all := get(root, "extenders"); all != nil {
		all.Content = slices.DeleteFunc(all.Content, func(e *yaml.Node) bool { return slices.Contains(drop, text(get(e, "urlPrefix"))) })
		if len(all.Content) == 0 {
			remove(root, "extenders")
		}
	}
	x := extenderCheck{release: release}
	for i, e := range items(get(root, "extenders")) {
		x.all = append(x.all, judgedExtender{Extender: readExtender(e), what: fmt.Sprintf("extenders[%d]", i), node: e})
	}
	for _, e := range add {
		x.all = append(x.all, e.judged())
		all := list(root, "extenders")
		all.Content = append(all.Content, e.node())
	}
	x.run()
	var wrong problems
	var notes []Note
	for _, f := range x.findings {
		if f.refuses() {
			wrong.add(position{}, f.try, "%s", f.message)
			continue
		}
		notes = append(notes, Note{Message: f.message + "; " + f.try, Warning: true})
	}
	if err := wrong.err(""); err != nil {
		return nil, nil, err
	}
	out, err := (&document{root: root}).encode()
	if err != nil {
		return nil, nil, fmt.Errorf("write scheduler configuration: %w", err)
	}
	return out, notes, nil
}
