package scheduler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"
)

// Arguments are what the scheduler's configuration says about a plugin, under
// profiles[].pluginConfig[].args. The zero value is none.
type Arguments struct {
	raw []byte
}

// NewArguments makes Arguments of a JSON or YAML document. It is not read before Decode.
func NewArguments(raw []byte) Arguments {
	return Arguments{raw: raw}
}

// Empty tells whether nothing was configured.
func (a Arguments) Empty() bool {
	text := strings.TrimSpace(string(a.raw))
	return text == "" || text == "null"
}

// Decode reads the arguments into a struct with json tags. Fields that are not in the document keep
// what they had, which is how a plugin gives its defaults. A field that the struct does not
// have, a field that stands there twice and a value of the wrong type are errors that name it.
func (a Arguments) Decode(into interface{}) error {
	if a.Empty() {
		return nil
	}
	document := bytes.TrimSpace(a.raw)
	// What begins with a bracket may be YAML's flow style, too.
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
		return fmt.Errorf("read the plugin's arguments: there is something after the closing bracket")
	}
	return nil
}

// noDuplicates reads one value and fails at a key that an object has twice. Keys that differ in
// case only are the same to encoding/json, and so they are here.
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
