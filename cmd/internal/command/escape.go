package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"
)

// escaper escapes control characters in a text stream, except line ends and tabs: names, events,
// conditions and logs come from the cluster's users, and could control the terminal. It also
// escapes what changes the order or the lines in the shown text (bidirectional controls and line
// separators). The escape \u001b is the escape in JSON and YAML, so that their values stay the
// same.
type escaper struct {
	// rest is the beginning of a character whose end is not written yet.
	rest []byte
}

func (e *escaper) escape(p []byte) []byte {
	text, escaped := slices.Concat(e.rest, p), make([]byte, 0, len(p))
	e.rest = nil
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if !utf8.FullRune(text) {
			e.rest = text
			break
		}
		if r == utf8.RuneError && size == 1 {
			r = rune(text[0]) // a terminal that does not use UTF-8 interprets the byte
		}
		switch lineEnd := r == '\n' || r == '\r' && len(text) > 1 && text[1] == '\n'; {
		case (unicode.IsControl(r) || reorders(r)) && !lineEnd && r != '\t':
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		default:
			escaped = append(escaped, text[:size]...)
		}
		text = text[size:]
	}
	return escaped
}

// reorders reports whether r changes the order or the lines in the text that a terminal shows.
func reorders(r rune) bool { return unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) }

// escapedYAML returns a value as YAML that has the same value when it is escaped: scalars with
// characters that reorder are in double quotes, because only there an escape is one. The YAML
// package quotes those with control characters itself, but does not read them in JSON.
func escapedYAML(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	text, err = sigsyaml.JSONToYAML((&escaper{}).escape(text))
	if err != nil || !bytes.ContainsFunc(text, reorders) {
		return text, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	quoteScalars(&document)
	return yaml.Marshal(&document)
}

func quoteScalars(node *yaml.Node) {
	if node.Kind == yaml.ScalarNode && strings.ContainsFunc(node.Value, reorders) {
		node.Style = yaml.DoubleQuotedStyle
	}
	for _, inner := range node.Content {
		quoteScalars(inner)
	}
}

// Escape returns one text with escaped control characters.
func Escape(text string) string { return string((&escaper{}).escape([]byte(text))) }
