package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// listDepth is the most lists that are in one another.
const listDepth = 32

// isJSON reports whether a file that begins with start is JSON: an object whose first key is
// quoted, which flow style in YAML is not, or an array of such objects.
func isJSON(start []byte) bool {
	const space = " \t\r\n"
	rest, ok := bytes.CutPrefix(bytes.TrimLeft(start, space+"["), []byte("{"))
	rest = bytes.TrimLeft(rest, space)
	return ok && len(rest) > 0 && (rest[0] == '"' || rest[0] == '}')
}

// json reads a stream of objects and lists. Only one item in a list is in memory, unless the items'
// type comes after them.
func (f *source) json(r io.Reader) error {
	lines := &lineReader{r: r, line: 1}
	s := newJSONStream(lines, f)
	s.line = func() int { return lines.lineAt(s.in.InputOffset()) }
	for {
		begun := s.in.InputOffset()
		err := s.document(0)
		switch {
		case errors.Is(err, io.EOF) && s.in.InputOffset() == begun:
			return nil
		case err != nil:
			return s.invalidSyntax(err)
		}
	}
}

// jsonStream reads objects, and hands over the items in lists.
type jsonStream struct {
	in   *json.Decoder
	line func() int
	to   *source
}

func newJSONStream(r io.Reader, to *source) *jsonStream {
	s := &jsonStream{in: json.NewDecoder(r), to: to}
	s.in.UseNumber()
	return s
}

// invalidSyntax marks a decoder's error as an input error.
func (s *jsonStream) invalidSyntax(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return problem.Invalidf("the text was cut off", "line %d: JSON: %w", s.line(), io.ErrUnexpectedEOF)
	case errors.As(err, &syntax), errors.As(err, &kind):
		return problem.Invalidf("a file has objects only: write messages of a command (2>) and logs to another file; "+
			"`kubectl cluster-info dump` separates them with --output-directory", "line %d: JSON: %w", s.line(), err)
	}
	return err
}

// document reads an object, a list or an array of them, and hands over its objects.
func (s *jsonStream) document(depth int) error {
	start, err := s.in.Token()
	if err != nil {
		return err
	}
	if start != json.Delim('[') {
		i, err := s.valueAfter(start, 0)
		if err != nil || i == nil {
			return err
		}
		return s.to.object(i)
	}
	if depth == listDepth {
		return problem.Invalidf("", "line %d: more than %d lists in one another", s.line(), listDepth)
	}
	for s.in.More() {
		if err := s.document(depth + 1); err != nil {
			return err
		}
	}
	_, err = s.in.Token()
	return err
}

// value reads a value. The result is nil for a list, whose items are handed over.
func (s *jsonStream) value(depth int) (*item, error) {
	start, err := s.in.Token()
	if err != nil {
		return nil, err
	}
	return s.valueAfter(start, depth)
}

// valueAfter reads a value of which the first token was read.
func (s *jsonStream) valueAfter(start json.Token, depth int) (i *item, err error) {
	if start == json.Delim('{') {
		return s.object(depth)
	}
	i = &item{line: s.line()}
	i.other, err = s.rest(start)
	return i, err
}

// object reads the rest of an object after its brace.
func (s *jsonStream) object(depth int) (*item, error) {
	l := newList(s.line(), s.to)
	for s.in.More() {
		token, err := s.in.Token()
		if err != nil {
			return nil, err
		}
		field := token.(string) // the key of an object
		var value json.RawMessage
		if field == itemsField && l.mayBeList() {
			value, err = s.items(l, depth+1)
		} else {
			err = s.in.Decode(&value)
		}
		if err == nil {
			err = l.set(field, value)
		}
		if err != nil {
			return nil, err
		}
	}
	if _, err := s.in.Token(); err != nil {
		return nil, err
	}
	return l.end()
}

// items reads the items in an object that may be a list. The result is the field's value if it is
// not an array.
func (s *jsonStream) items(l *list, depth int) (json.RawMessage, error) {
	if depth > listDepth {
		return nil, problem.Invalidf("", "line %d: more than %d lists in one another", s.line(), listDepth)
	}
	start, err := s.in.Token()
	if err != nil {
		return nil, err
	}
	if start != json.Delim('[') {
		return s.rest(start)
	}
	l.isArray = true
	for s.in.More() {
		i, err := s.value(depth)
		if err == nil {
			err = l.add(i)
		}
		if err != nil {
			return nil, err
		}
	}
	_, err = s.in.Token()
	return nil, err
}

// rest returns a value of which the first token was read.
func (s *jsonStream) rest(start json.Token) (json.RawMessage, error) {
	switch start {
	case json.Delim('['):
		elements := []json.RawMessage{}
		for s.in.More() {
			var element json.RawMessage
			if err := s.in.Decode(&element); err != nil {
				return nil, err
			}
			elements = append(elements, element)
		}
		if _, err := s.in.Token(); err != nil {
			return nil, err
		}
		return json.Marshal(elements)
	case json.Delim('{'):
		fields := map[string]json.RawMessage{}
		for s.in.More() {
			field, err := s.in.Token()
			if err != nil {
				return nil, err
			}
			var value json.RawMessage
			if err := s.in.Decode(&value); err != nil {
				return nil, err
			}
			fields[field.(string)] = value
		}
		if _, err := s.in.Token(); err != nil {
			return nil, err
		}
		return json.Marshal(fields)
	}
	text, err := json.Marshal(start)
	if err != nil {
		return nil, fmt.Errorf("encode %v: %w", start, err)
	}
	return text, nil
}

// lineReader counts the lines in a text that a decoder reads ahead.
type lineReader struct {
	r     io.Reader
	read  int64
	ahead []int64 // the offsets of line breaks after line
	line  int
}

func (l *lineReader) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			l.ahead = append(l.ahead, l.read+int64(i))
		}
	}
	l.read += int64(n)
	return n, err
}

// lineAt returns the line at an offset, which is not before the last one.
func (l *lineReader) lineAt(offset int64) int {
	passed := 0
	for passed < len(l.ahead) && l.ahead[passed] < offset {
		passed++
	}
	l.line += passed
	l.ahead = l.ahead[passed:]
	return l.line
}
