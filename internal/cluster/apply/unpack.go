package apply

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Bounds for a revision's objects and record. Something else may have written it: 63 KiB can unpack
// to 64 MiB, and 64 MiB JSON to gigabytes of values. A scheduler's objects have some thousand
// values.
const (
	maxUnpacked = 8 << 20 // bytes of JSON
	maxValues   = 50_000  // JSON values and keys
	maxDepth    = 64      // nested arrays and JSON objects
	maxObjects  = 200
)

// jsonMeter measures the JSON that is written to it, and fails when it exceeds a bound. It keeps
// nothing, and does not check the syntax.
type jsonMeter struct {
	size, values, depth int
	inString, escaped   bool
}

// Write measures part of the text.
func (m *jsonMeter) Write(part []byte) (int, error) {
	m.size += len(part)
	for _, c := range part {
		switch {
		case m.escaped:
			m.escaped = false
		case m.inString:
			m.escaped, m.inString = c == '\\', c != '"'
		case c == '"':
			m.inString = true
		case c == '[' || c == '{':
			m.depth++
			m.values++
		case c == ']' || c == '}':
			m.depth--
		case c == ',' || c == ':':
			m.values++
		}
		if m.depth > maxDepth {
			return 0, fmt.Errorf("more than %d levels of nested values", maxDepth)
		}
	}
	switch {
	case m.size > maxUnpacked:
		return 0, fmt.Errorf("larger than %d bytes", maxUnpacked)
	case m.values > maxValues:
		return 0, fmt.Errorf("more than %d values", maxValues)
	}
	return len(part), nil
}

// checkBounds returns an error if text exceeds the bounds in [decompress].
func checkBounds(text []byte) error {
	_, err := new(jsonMeter).Write(text)
	return err
}

func compress(text []byte) ([]byte, error) {
	if err := checkBounds(text); err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, err := zip.Write(text)
	if err := errors.Join(err, zip.Close()); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// decompress unpacks JSON. It measures the text first, and allocates nothing for a text that
// exceeds the bounds.
func decompress(data []byte) ([]byte, error) {
	var meter jsonMeter
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err == nil {
		_, err = io.Copy(&meter, zip)
	}
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	text := make([]byte, meter.size)
	if zip, err = gzip.NewReader(bytes.NewReader(data)); err == nil {
		_, err = io.ReadFull(zip, text)
	}
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	return text, nil
}

func packObjects(objs []*unstructured.Unstructured) ([]byte, error) {
	if len(objs) > maxObjects {
		return nil, fmt.Errorf("%d objects, the limit is %d", len(objs), maxObjects)
	}
	plainObjects := make([]map[string]any, len(objs))
	for i, obj := range objs {
		plainObjects[i] = obj.Object
	}
	text, err := json.Marshal(plainObjects)
	if err != nil {
		return nil, err
	}
	return compress(text)
}

func unpackObjects(data []byte) ([]*unstructured.Unstructured, error) {
	text, err := decompress(data)
	if err != nil {
		return nil, err
	}
	var objs []*unstructured.Unstructured
	decoder := json.NewDecoder(bytes.NewReader(text))
	if start, err := decoder.Token(); err != nil || start != json.Delim('[') {
		return nil, errors.Join(errors.New("decode: not a list of objects"), err)
	}
	for decoder.More() {
		if len(objs) == maxObjects {
			return nil, fmt.Errorf("decode: more than %d objects", maxObjects)
		}
		var raw json.RawMessage
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(&raw); err != nil {
			return nil, fmt.Errorf("decode object %d: %w", len(objs), err)
		}
		if err := obj.UnmarshalJSON(raw); err != nil {
			return nil, fmt.Errorf("decode object %d: %w", len(objs), err)
		}
		objs = append(objs, obj)
	}
	if _, err := decoder.Token(); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return objs, nil
}
