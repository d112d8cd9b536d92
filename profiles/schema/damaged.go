package schema

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"
)

// fence matches a line that marks the beginning or end of a code block in a document, which may be
// copied with the code. No YAML begins with a backquote.
var fence = regexp.MustCompile("(?m)^```[a-z]*[ \t\r]*$")

// Part is one document of a source. Lines count from 1.
type Part struct {
	First, Last int
	// Text is the whole source, in which all other lines are empty.
	Text []byte
	// Objects are the root mappings. A list of objects has several.
	Objects []*yaml.Node
	// Problem is set if the document is damaged. Objects is empty then.
	Problem *Problem
	notes   []Note
}

// maxParts bounds the documents of a source: the text of each has the lines of all.
const maxParts = 1000

// Parts reads each document of a source by itself, so that a damaged one does not hide the others.
// Code fences are left out, and wrapped values are joined. An empty document is no part.
func Parts(source []byte) (parts []Part, notes []Note) {
	source = fence.ReplaceAllFunc(source, func(line []byte) []byte {
		notes = []Note{{Message: "lines with ``` are left out: they mark code in a document"}}
		return nil
	})
	lines := bytes.Split(source, []byte("\n"))
	if bytes.Count(source, []byte("\n---")) > maxParts {
		return []Part{{First: 1, Last: len(lines), Text: source,
			Problem: &Problem{Line: 1, Column: 1, Message: fmt.Sprintf("more than %d documents", maxParts)}}}, nil
	}
	first := 0
	for i := 0; i <= len(lines); i++ {
		if i < len(lines) && !bytes.HasPrefix(lines[i], []byte("---")) {
			continue
		}
		if p := readPart(lines, first, i); len(bytes.TrimSpace(p.Text)) > 0 {
			parts = append(parts, p)
		}
		first = i + 1
	}
	return parts, notes
}

// readPart reads the lines from first to before end, counted from 0.
func readPart(lines [][]byte, first, end int) Part {
	p := Part{First: first + 1, Last: end}
	own := make([][]byte, len(lines))
	copy(own[first:end], lines[first:end])
	p.Text = bytes.Join(own, []byte("\n"))
	p.Objects, p.Problem = decodeAll(p.Text)
	if p.Problem != nil {
		if joined, notes := joinWrapped(p.Text); len(notes) > 0 {
			if objects, problem := decodeAll(joined); problem == nil {
				p.Objects, p.notes, p.Problem = objects, notes, nil
			}
		}
	}
	return p
}

// repairSource reads the documents of a source that is not valid YAML as a whole. A damaged one
// without a configuration is left out, with a note; problem is what is wrong with the whole.
func (d *Document) repairSource(source []byte, problem *Problem) ([]*yaml.Node, *Problem) {
	parts, notes := Parts(source)
	var objects []*yaml.Node
	for _, p := range parts {
		switch {
		case p.Problem == nil:
			objects, notes = append(objects, p.Objects...), append(notes, p.notes...)
		case len(parts) == 1 || configurationText.Match(p.Text):
			return nil, problem
		default:
			notes = append(notes, Note{Line: p.First, Column: 1, Warning: true,
				Message: fmt.Sprintf("lines %d to %d are not read, they have no scheduler configuration: %s", p.First, p.Last,
					p.Problem.Message)})
		}
	}
	if len(objects) == 0 || !slices.ContainsFunc(parts, func(p Part) bool { return configurationText.Match(p.Text) }) {
		return nil, problem
	}
	d.Notes = append(d.Notes, notes...)
	return objects, nil
}
