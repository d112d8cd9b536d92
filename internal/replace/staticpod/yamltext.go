package staticpod

import (
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v3"
)

// quotedString is a string that is always written with quotes.
type quotedString string

// field is one entry in a mapping to write. The value is a string, a bool, an int, a quotedString,
// a []field or a [][]field.
type field struct {
	name  string
	value any
}

// flow returns a value on one line, as JSON, which is valid in YAML flow style.
func flow(value any) string {
	switch v := value.(type) {
	case []field:
		parts := make([]string, 0, len(v))
		for _, f := range v {
			parts = append(parts, quote(f.name)+": "+flow(f.value))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case [][]field:
		parts := make([]string, 0, len(v))
		for _, item := range v {
			parts = append(parts, flow(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	default:
		return quote(v)
	}
}

// block returns a mapping's entries, one per line. The caller indents the first line and ends the
// last.
func block(fields []field, indent int, eol string) string {
	parts := make([]string, 0, len(fields))
	margin := eol + strings.Repeat(" ", indent)
	for _, f := range fields {
		switch v := f.value.(type) {
		case []field:
			parts = append(parts, f.name+":"+margin+"  "+block(v, indent+2, eol))
		case [][]field:
			entry := f.name + ":"
			for _, item := range v {
				entry += margin + "- " + block(item, indent+2, eol)
			}
			parts = append(parts, entry)
		default:
			parts = append(parts, f.name+": "+plain(v))
		}
	}
	return strings.Join(parts, margin)
}

// quote returns a scalar as JSON.
func quote(value any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return `""` // strings, numbers and booleans can always be encoded
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// plain returns a scalar without quotes if it does not need them.
func plain(value any) string {
	s, isString := value.(string)
	if !isString {
		return quote(value)
	}
	var back any
	safe := s != "" && !strings.ContainsAny(s, " \t\n#'\"{}[],&*!|>%@`") && !strings.HasSuffix(s, ":") &&
		!strings.Contains(s, ": ")
	if safe && yaml.Unmarshal([]byte(s), &back) == nil && back == s && !numeric(s) {
		return s
	}
	return quote(s)
}

// numeric reports whether an older YAML parser may read s as a number: a hash of digits, or digits
// around an e.
func numeric(s string) bool {
	return strings.Trim(s, "0123456789abcdefABCDEFxo_.:+-") == ""
}

// like returns a string in another scalar's style.
func like(style yaml.Style, inFlow bool, s string) string {
	switch {
	case style&yaml.SingleQuotedStyle != 0 && !strings.ContainsAny(s, "\n"):
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	case style&yaml.DoubleQuotedStyle != 0 || inFlow:
		return quote(s)
	default:
		return plain(s)
	}
}
