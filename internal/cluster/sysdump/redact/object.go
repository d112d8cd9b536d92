package redact

import (
	"fmt"
	"regexp"
	"strings"
)

// Value returns a copy of a JSON value (maps, lists, strings and others) without secrets.
func (r *Redactor) Value(value any) any {
	switch v := value.(type) {
	case string:
		return r.leaf(v)
	case []any:
		return r.list(v)
	case map[string]any:
		return r.object(v)
	}
	return value
}

// leaf redacts a string. Text with a Secret object is removed completely: any field may be a
// secret.
func (r *Redactor) leaf(text string) string {
	if secretObject.MatchString(text) {
		return marker + " (it has an object of kind Secret)"
	}
	return r.Text(text)
}

// object redacts an object or one of its parts.
func (r *Redactor) object(o map[string]any) map[string]any {
	redacted := make(map[string]any, len(o))
	kind, _ := o["kind"].(string)
	_, isEnv := o["name"].(string)
	_, hasValue := o["value"].(string)
	for key, value := range o {
		text, isText := value.(string)
		switch {
		case kind == "Secret" && (key == "data" || key == "stringData"), key == "binaryData":
			redacted[key] = sizes(value)
		case key == "annotations":
			redacted[key] = r.annotations(value)
		case isEnv && hasValue && len(o) == 2 && key == "value" && text != "":
			// an environment variable, or a parameter in that form
			redacted[key] = marker
		case isText && text != "" && isSensitiveKey(key) && !plain.MatchString(text):
			redacted[key] = marker
		default:
			redacted[key] = r.Value(value)
		}
	}
	return redacted
}

// sizes replaces the values in a map by their sizes.
func sizes(value any) any {
	data, ok := value.(map[string]any)
	if !ok {
		return marker
	}
	redacted := map[string]any{}
	for key, v := range data {
		text, _ := v.(string)
		redacted[key] = fmt.Sprintf("%s (%d bytes)", marker, len(text))
	}
	return redacted
}

// annotations removes copies of the object, such as kubectl's last-applied-configuration.
func (r *Redactor) annotations(value any) any {
	all, ok := value.(map[string]any)
	if !ok {
		return r.Value(value)
	}
	redacted := map[string]any{}
	for key, v := range all {
		if strings.Contains(key, "last-applied") || isSensitiveKey(key) {
			redacted[key] = marker
		} else {
			redacted[key] = r.Value(v)
		}
	}
	return redacted
}

// sensitiveFlag matches a flag whose value is the next argument.
var sensitiveFlag = regexp.MustCompile(`(?i)^--?[a-z0-9-]*` + sensitiveName + `$`)

// list redacts a list. In a command line the argument after a sensitive flag is its value.
func (r *Redactor) list(items []any) []any {
	redacted := make([]any, len(items))
	after := false
	for i, item := range items {
		text, isText := item.(string)
		if after && isText && !strings.HasPrefix(text, "-") {
			redacted[i] = marker
		} else {
			redacted[i] = r.Value(item)
		}
		after = isText && sensitiveFlag.MatchString(text)
	}
	return redacted
}
