package files

import (
	"bufio"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// source reads the objects in JSON and YAML files.
type source struct {
	do func(map[string]any) error
	// reads reports whether the objects of a type are checked, because they are not ignored.
	reads func(apiVersion, kind string) bool
	notes []string
	// unknown are fields, with their kind, that client-go does not know.
	unknown map[string]bool
	// pages has the list kinds, and whether a list goes on in another one.
	pages map[string]bool
	// endsInLine is set if the last file has no line break at its end, printed if its last object is
	// from an API server.
	endsInLine, printed bool
}

// stream reads a file.
func (f *source) stream(text *bufio.Reader, start []byte) error {
	if isJSON(start) {
		return f.json(text)
	}
	f.endsInLine, f.printed = false, false
	err := f.yaml(text)
	if f.endsInLine && f.printed {
		f.note("a file ends in the middle of a line: kubectl ends every line, so that the text may have been cut off")
	}
	return err
}

func (f *source) note(text string) {
	if !slices.Contains(f.notes, text) {
		f.notes = append(f.notes, text)
	}
}

// object hands over an object.
func (f *source) object(i *item) error {
	text, err := i.encode()
	if err != nil {
		return err
	}
	if i.fields == nil {
		return i.notObject()
	}
	o, err := snapshot.Decode(text)
	if err != nil {
		return problem.Invalidf("", "line %d: %w", i.line, err)
	}
	apiVersion, kind := i.text(apiVersionField), i.text(kindField)
	if apiVersion == "" || kind == "" {
		return problem.Invalidf("", "line %d: an object has no apiVersion and kind", i.line)
	}
	if apiVersion == "v1" && kind == "Status" && i.text("status") == metav1.StatusFailure {
		return problem.Invalidf("read the missing objects again", "line %d: the API server returned an error: %s", i.line,
			i.text("message"))
	}
	if f.reads(apiVersion, kind) {
		unknown, err := check(apiVersion, kind, text)
		if err != nil {
			return problem.Invalidf("", "line %d: %s: %w", i.line, nameOf(o), err)
		}
		f.addUnknown(kind, unknown)
	}
	metadata, _ := o[metadataField].(map[string]any)
	f.printed = metadata["resourceVersion"] != nil
	if err := f.do(o); err != nil {
		return fmt.Errorf("line %d: %s: %w", i.line, nameOf(o), err)
	}
	return nil
}

// nameOf returns an object's kind, namespace and name.
func nameOf(o map[string]any) string {
	metadata, _ := o[metadataField].(map[string]any)
	var parts []string
	for _, field := range []string{"namespace", "name"} {
		if text, _ := metadata[field].(string); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.TrimSpace(fmt.Sprintf("%v %s", o[kindField], strings.Join(parts, "/")))
}

func (f *source) addUnknown(kind string, fields []string) {
	for _, field := range fields {
		if f.unknown == nil {
			f.unknown = map[string]bool{}
		}
		f.unknown[kind+" "+field] = true
	}
}

// page remembers that a list from an API server goes on in another, or that it ends.
func (f *source) page(l *list, goesOn bool) {
	if f.pages == nil {
		f.pages = map[string]bool{}
	}
	f.pages[l.text(kindField)] = goesOn
}

// unknownFields limits the fields that a note names.
const unknownFields = 5

// end returns an error if a list is not complete, and notes the unknown fields.
func (f *source) end() error {
	for _, kind := range slices.Sorted(maps.Keys(f.pages)) {
		if f.pages[kind] {
			return problem.Invalidf("read the list without limit, as kubectl get does",
				"read objects: the %s is not complete: metadata.continue is set", kind)
		}
	}
	names := slices.Sorted(maps.Keys(f.unknown))
	if len(names) == 0 {
		return nil
	}
	more := ""
	if len(names) > unknownFields {
		more = fmt.Sprintf(" and %d more", len(names)-unknownFields)
		names = names[:unknownFields]
	}
	f.note("fields that this pmk-sched does not know: " + strings.Join(names, ", ") + more)
	return nil
}
