package scheduler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"
)

// Arguments are a plugin's arguments in the scheduler configuration:
// profiles[].pluginConfig[].args. The zero value has no arguments.
type Arguments struct {
	raw []byte
}

// NewArguments returns the arguments in a JSON or YAML document. Decode parses it.
func NewArguments(raw []byte) Arguments {
	return Arguments{raw: raw}
}

// Empty reports whether the arguments are empty or null.
func (a Arguments) Empty() bool {
	text := strings.TrimSpace(string(a.raw))
	return text == "" || text == "null"
}

// Decode decodes the arguments into a struct with json tags. Fields that are not in the document
// keep their values: set defaults before calling Decode. Unknown fields, duplicate fields and
// values of the wrong type are errors that name the field.
func (a Arguments) Decode(into interface{}) error {
	if a.Empty() {
		return nil
	}
	document := bytes.TrimSpace(a.raw)
	// A document that begins with a brace may be YAML in flow style.
	if notJSON := json.NewDecoder(bytes.NewReader(document)).Decode(new(json.RawMessage)); notJSON != nil {
		converted, err := yaml.YAMLToJSONStrict(document)
		if err != nil && document[0] == '{' {
			err = notJSON
		}
		if err != nil {
			return fmt.Errorf("read the plugin's arguments: %w", err)
		}
		document = converted
	}
	if err := noDuplicates(json.NewDecoder(bytes.NewReader(document)), ""); err != nil {
		return fmt.Errorf("read the plugin's arguments: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("read the plugin's arguments: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if decoder.More() {
		return fmt.Errorf("read the plugin's arguments: unexpected data after the closing brace")
	}
	return nil
}

// noDuplicates reads one value and fails if an object has a key twice. Keys are compared without
// regard to case, as encoding/json does.
func noDuplicates(decoder *json.Decoder, path string) error {
	token, err := decoder.Token()
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		seen := map[string]bool{}
		for decoder.More() {
			key, err := decoder.Token()
			if err != nil {
				return err
			}
			name := fmt.Sprint(key)
			if seen[strings.ToLower(name)] {
				return fmt.Errorf("duplicate field %q", strings.TrimPrefix(path+"."+name, "."))
			}
			seen[strings.ToLower(name)] = true
			if err := noDuplicates(decoder, path+"."+name); err != nil {
				return err
			}
		}
	case json.Delim('['):
		for i := 0; decoder.More(); i++ {
			if err := noDuplicates(decoder, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	if _, err = decoder.Token(); err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
