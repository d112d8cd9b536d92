package files

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// textBytes is the longest document, and the longest item of a list, in YAML.
const textBytes = 16 << 20

// eachYAML calls do with each object of a stream of documents. Of a list as kubectl prints it,
// whose items begin with a dash in the first column, only one item is in memory.
func eachYAML(r io.Reader, do func(map[string]any) error) error {
	s := &yamlStream{in: bufio.NewReader(r), do: do}
	for {
		line, err := s.in.ReadString('\n')
		if len(line) > 0 {
			if err := s.line(line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return s.endDocument()
		}
		if err != nil {
			return err
		}
	}
}

// yamlStream splits a stream at the documents and at the items of lists.
type yamlStream struct {
	in *bufio.Reader
	do func(map[string]any) error

	number int            // of the line
	text   bytes.Buffer   // of the document, or of the item
	inList bool           // the text is an item
	list   map[string]any // the type of the list, if it comes before the items
	items  int
	begin  int // the line where the text begins
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
	case !s.inList && strings.TrimRight(line, " \r\n") == "items:":
		if isList, err := s.beginList(); isList || err != nil {
			return err
		}
	case s.inList && strings.HasPrefix(line, "- "):
		if err := s.endItem(); err != nil {
			return err
		}
		s.items++
		line = "  " + line[2:]
	case s.inList && s.items > 0 && !strings.ContainsAny(line[:1], " \t\r\n#"):
		if err := s.endItem(); err != nil { // the line after the list
			return err
		}
		s.items = 0
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

// beginList reports whether the following items are items of a list in the style of kubectl, and
// reads the fields before them: apiVersion, and kind if it comes first. kubectl prints fields in
// alphabetical order, so that kind comes after the items.
func (s *yamlStream) beginList() (bool, error) {
	if next, err := s.in.Peek(2); err != nil || string(next) != "- " {
		return false, nil //nolint:nilerr // the error comes again with the next line
	}
	list := map[string]any{}
	if err := yaml.Unmarshal(s.text.Bytes(), &list); err != nil {
		return false, s.invalid(err)
	}
	if kind, ok := list["kind"].(string); ok && !strings.HasSuffix(kind, "List") {
		return false, nil
	}
	s.text.Reset()
	s.list, s.inList, s.items = list, true, 0
	return true, nil
}

// endItem hands over an item of a list. Text outside of items is ignored.
func (s *yamlStream) endItem() error {
	defer s.text.Reset()
	if s.items == 0 {
		return nil
	}
	item, err := s.decode()
	if err != nil || item == nil {
		return err
	}
	return addItem(s.list, item, s.do)
}

// endDocument hands over a document, which may be a list in another style than kubectl's.
func (s *yamlStream) endDocument() error {
	if s.inList {
		s.inList = false
		err := s.endItem()
		s.text.Reset()
		return err
	}
	defer s.text.Reset()
	document, err := s.decode()
	if err != nil || len(document) == 0 {
		return err
	}
	items, isList := document["items"].([]any)
	if kind, _ := document["kind"].(string); !isList || !strings.HasSuffix(kind, "List") {
		return s.do(document)
	}
	for _, i := range items {
		item, _ := i.(map[string]any)
		if err := addItem(document, item, s.do); err != nil {
			return err
		}
	}
	return nil
}

// decode decodes the text. A document of comments is nil.
func (s *yamlStream) decode() (map[string]any, error) {
	text, err := yaml.YAMLToJSON(s.text.Bytes())
	if err != nil {
		return nil, s.invalid(err)
	}
	if bytes.Equal(bytes.TrimSpace(text), []byte("null")) {
		return nil, nil
	}
	object, err := snapshot.Decode(text)
	if err != nil {
		return nil, s.invalid(err)
	}
	return object, nil
}

func (s *yamlStream) invalid(err error) error {
	return problem.Invalidf("", "YAML document at line %d: %w", max(s.begin, 1), err)
}
