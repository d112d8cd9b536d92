package staticpod

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// text is a YAML document in which nodes can be located.
type text struct {
	raw []byte
	// lines holds the offset of the first byte in each line.
	lines []int
	// eol is the document's line ending.
	eol string
}

// splice replaces the bytes from at to end.
type splice struct {
	at, end int
	with    string
}

// newText splits a document into lines. It refuses text whose lines the YAML parser would count
// differently.
func newText(raw []byte) (*text, error) {
	t := &text{raw: raw, lines: []int{0}, eol: "\n"}
	crlf, lf := bytes.Count(raw, []byte("\r\n")), bytes.Count(raw, []byte("\n"))
	switch {
	case !utf8.Valid(raw):
		return nil, errors.New("it is not UTF-8")
	case bytes.HasPrefix(raw, []byte("\ufeff")):
		return nil, errors.New("it begins with a byte order mark")
	case bytes.ContainsAny(raw, "\u0085\u2028\u2029"):
		return nil, errors.New("it has a line break that is neither LF nor CRLF")
	case bytes.Count(raw, []byte("\r")) != crlf:
		return nil, errors.New("it has carriage returns without a line feed")
	case crlf != 0 && crlf != lf:
		return nil, errors.New("some of its lines end in CRLF and some in LF")
	case crlf != 0:
		t.eol = "\r\n"
	}
	for i, b := range raw {
		if b == '\n' {
			t.lines = append(t.lines, i+1)
		}
	}
	return t, nil
}

// offset returns a node's offset. yaml counts lines and characters from 1.
func (t *text) offset(n *yaml.Node) (int, error) {
	if n.Line < 1 || n.Line > len(t.lines) || n.Column < 1 {
		return 0, fmt.Errorf("line %d: node not found in the text", n.Line)
	}
	at := t.lines[n.Line-1]
	for range n.Column - 1 {
		_, size := utf8.DecodeRune(t.raw[at:])
		if size == 0 || t.raw[at] == '\n' {
			return 0, fmt.Errorf("line %d: node not found in the text", n.Line)
		}
		at += size
	}
	return at, nil
}

// span returns a scalar's start and end on one line.
func (t *text) span(n *yaml.Node) (at, end int, err error) {
	at, err = t.offset(n)
	if err != nil {
		return 0, 0, err
	}
	line, _, _ := strings.Cut(string(t.raw[at:]), "\n")
	line = strings.TrimSuffix(line, "\r")
	length := 0
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		length = quotedLength(line, '"')
	case n.Style&yaml.SingleQuotedStyle != 0:
		length = quotedLength(line, '\'')
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 && n.Value != "" && strings.HasPrefix(line, n.Value):
		length = len(n.Value)
		if rest := line[length:]; rest != "" && !strings.ContainsAny(rest[:1], " \t,]}") {
			length = 0
		}
	}
	var written string
	if length == 0 || yaml.Unmarshal([]byte(line[:length]), &written) != nil || written != n.Value {
		return 0, 0, fmt.Errorf("line %d: the value takes more than one line or is written in an unsupported style", n.Line)
	}
	return at, at + length, nil
}

// quotedLength returns the length of the quoted scalar at the beginning of line, or 0 if it does
// not end on the line.
func quotedLength(line string, quote byte) int {
	for i := 1; i < len(line); i++ {
		switch {
		case quote == '"' && line[i] == '\\':
			i++
		case line[i] == quote && quote == '\'' && strings.HasPrefix(line[i+1:], "'"):
			i++
		case line[i] == quote:
			return i + 1
		}
	}
	return 0
}

// with returns the text with the splices applied. Splices at the same place keep their order.
func (t *text) with(splices []splice) []byte {
	slices.SortStableFunc(splices, func(a, b splice) int { return a.at - b.at })
	var out bytes.Buffer
	done := 0
	for _, s := range splices {
		out.Write(t.raw[done:s.at])
		out.WriteString(s.with)
		done = s.end
	}
	out.Write(t.raw[done:])
	return out.Bytes()
}
