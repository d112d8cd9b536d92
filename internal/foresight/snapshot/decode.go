package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Decode decodes an object from JSON. Its numbers are [json.Number], so that none loses digits.
func Decode(text []byte) (map[string]any, error) {
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	var o object
	if err := in.Decode(&o); err != nil {
		return nil, err
	}
	if o == nil {
		return nil, errors.New("expected an object, got null")
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one object")
	}
	return o, nil
}

// Encode encodes an object as JSON in one line, with sorted keys.
func Encode(o map[string]any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(o); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// Convert decodes an object into a value of its type.
func Convert(o map[string]any, into any) error {
	text, err := Encode(o)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("read an object of the snapshot: %w", err)
	}
	return nil
}
