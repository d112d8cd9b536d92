package main

import (
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"
)

// escaper escapes control characters in the text of a stream, except line ends and tabs: names,
// events, conditions and logs come from users of the cluster, and could control the terminal. The
// escape \u001b is the escape of JSON and YAML, so that their values stay the same.
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
		case unicode.IsControl(r) && !lineEnd && r != '\t':
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		default:
			escaped = append(escaped, text[:size]...)
		}
		text = text[size:]
	}
	return escaped
}

// escape returns one text with escaped control characters.
func escape(text string) string { return string((&escaper{}).escape([]byte(text))) }
