package files

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// textBytes is the longest document, and the longest item in a list, in YAML.
const textBytes = 16 << 20

// yaml reads a document stream. In a list as kubectl prints it, whose items begin with a dash in
// the first column, only one item is in memory.
func (f *source) yaml(r io.Reader) error {
	s := &yamlStream{in: bufio.NewReader(r), to: f}
	for {
		line, err := s.in.ReadString('\n')
		if len(line) > 0 {
			if err := s.line(line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			f.endsInLine = line != ""
			return s.endDocument()
		}
		if err != nil {
			return err
		}
	}
}

// yamlStream splits a stream at the documents and at the items in lists.
type yamlStream struct {
	in *bufio.Reader
	to *source

	number int          // of the line
	text   bytes.Buffer // of the document, of an item, or of the fields around the items
	begin  int          // the line where the text begins
	list   *list        // of the document, if its items are read one after the other
	inItem bool         // the text is an item
}

func (s *yamlStream) line(line string) error {
	s.number++
	if rest, ok := marker(line); ok {
		if err := s.endDocument(); err != nil || rest == "" {
			return err
		}
		line = rest
	}
	switch {
	case s.list == nil && strings.TrimRight(line, " \r\n") == itemsField+":":
		if isList, err := s.beginList(); isList || err != nil {
			return err
		}
	case s.inItem && beginsItem(line):
		if err := s.endItem(); err != nil {
			return err
		}
		line = " " + line[1:]
	case s.inItem && !strings.ContainsAny(line[:1], " \t\r\n#"):
		if err := s.endItem(); err != nil { // the line after the list
			return err
		}
		s.inItem = false
	}
	if s.text.Len() == 0 {
		s.begin = s.number
	}
	if s.text.Len()+len(line) > textBytes {
		return problem.Invalidf("print it with -o json, which is read object by object",
			"line %d: a YAML document is longer than %d MiB", s.begin, textBytes>>20)
	}
	s.text.WriteString(line)
	return nil
}

// marker reports whether a line ends a document, and returns the text after the marker.
func marker(line string) (rest string, ok bool) {
	for _, mark := range []string{"---", "..."} {
		rest, ok := strings.CutPrefix(line, mark)
		if ok && strings.TrimLeft(rest, " \t\r\n") != rest || ok && rest == "" {
			rest = strings.TrimLeft(rest, " \t\r\n")
			if strings.HasPrefix(rest, "#") {
				rest = ""
			}
			return rest, true
		}
	}
	return "", false
}

// beginsItem reports whether a line begins an item in the first column.
func beginsItem(line string) bool {
	return len(line) > 1 && line[0] == '-' && strings.ContainsAny(line[1:2], " \t\r\n")
}

// beginList reports whether the following items are items in a kubectl-style list, and reads the
// fields before them. kubectl prints fields in alphabetical order, so that kind comes after the
// items.
func (s *yamlStream) beginList() (bool, error) {
	if next, err := s.in.Peek(2); err != nil || !beginsItem(string(next)) {
		return false, nil //nolint:nilerr // the error comes again with the next line
	}
	l := newList(max(s.begin, 1), s.to)
	if s.text.Len() == 0 {
		l.line = s.number
	}
	if err := s.setFields(l); err != nil || !l.mayBeList() {
		return false, err
	}
	s.text.Reset()
	s.list, s.inItem, l.isArray = l, true, true
	return true, l.set(itemsField, nil)
}

// setFields sets the list fields that are in the text.
func (s *yamlStream) setFields(l *list) error {
	text, err := s.toJSON()
	if err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return s.invalid(err)
	}
	for field, value := range fields {
		if err := l.set(field, value); err != nil {
			return err
		}
	}
	return nil
}

// endItem adds an item to its list. The text before the first item is empty.
func (s *yamlStream) endItem() error {
	defer s.text.Reset()
	if s.text.Len() == 0 {
		return nil
	}
	text, err := s.toJSON()
	if err != nil {
		return err
	}
	i, err := s.parse(text).value(0)
	if err != nil {
		return err
	}
	return s.list.add(i)
}

// endDocument hands over a document, or ends the list that it is.
func (s *yamlStream) endDocument() (err error) {
	defer s.text.Reset()
	l := s.list
	if l == nil {
		text, err := s.toJSON()
		if err != nil || string(text) == "null" { // comments only
			return err
		}
		return s.parse(text).document(0)
	}
	if s.inItem {
		err = s.endItem()
	} else {
		err = s.setFields(l)
	}
	s.list, s.inItem = nil, false
	if err != nil {
		return err
	}
	i, err := l.end()
	if err != nil || i == nil {
		return err
	}
	return s.to.object(i)
}

func (s *yamlStream) parse(text []byte) *jsonStream {
	in := newJSONStream(bytes.NewReader(text), s.to)
	in.line = func() int { return max(s.begin, 1) }
	return in
}

// toJSON converts the text. A field that is there twice is an error.
func (s *yamlStream) toJSON() ([]byte, error) {
	text, err := yaml.YAMLToJSONStrict(s.text.Bytes())
	if err == nil {
		return bytes.TrimSpace(text), nil
	}
	// The same text on its lines in the file, for the numbers in the error.
	text = append(bytes.Repeat([]byte("\n"), max(s.begin-1, 0)), s.text.Bytes()...)
	if _, again := yaml.YAMLToJSONStrict(text); again != nil {
		err = again
	}
	return nil, s.invalid(errors.New(yamlPrefix.ReplaceAllString(err.Error(), "")))
}

// yamlPrefix matches the beginning of messages from the YAML libraries.
var yamlPrefix = regexp.MustCompile(`(?s)^(error converting YAML to JSON: )?(yaml: )?(unmarshal errors:\s*)?`)

func (s *yamlStream) invalid(err error) error {
	if strings.HasPrefix(err.Error(), "line ") {
		return problem.Invalidf("", "YAML: %w", err)
	}
	return problem.Invalidf("", "YAML text at line %d: %w", max(s.begin, 1), err)
}
