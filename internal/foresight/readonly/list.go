package readonly

import (
	"encoding/json"
	"fmt"
	"io"
)

// EditList writes a list from the API server, one object at a time: as JSON, a large cluster's pods
// do not fit into memory. metadata may change the list's metadata. edit returns the object to write
// for an object, or nil.
func EditList(
	w io.Writer, from io.Reader, metadata func(map[string]any), edit func(map[string]any) map[string]any,
) error {
	d := json.NewDecoder(from)
	d.UseNumber()
	if err := expect(d, '{'); err != nil {
		return err
	}
	separator := "{"
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return fmt.Errorf("read a list: %w", err)
		}
		if _, err := fmt.Fprintf(w, "%s%q:", separator, key); err != nil {
			return err
		}
		separator = ","
		if key == "items" {
			err = editItems(w, d, edit)
		} else {
			err = copyField(w, d, key, metadata)
		}
		if err != nil {
			return err
		}
	}
	if err := expect(d, '}'); err != nil {
		return err
	}
	_, err := io.WriteString(w, "}")
	return err
}

// copyField writes a field of a list.
func copyField(w io.Writer, d *json.Decoder, key any, edit func(map[string]any)) error {
	var value any
	if err := d.Decode(&value); err != nil {
		return fmt.Errorf("read %s of a list: %w", key, err)
	}
	if metadata, ok := value.(map[string]any); ok && key == "metadata" {
		edit(metadata)
	}
	return json.NewEncoder(w).Encode(value)
}

// editItems writes the objects in a list.
func editItems(w io.Writer, d *json.Decoder, edit func(map[string]any) map[string]any) error {
	if err := expect(d, '['); err != nil {
		return err
	}
	encoder, separator := json.NewEncoder(w), "["
	for d.More() {
		var fields map[string]any
		if err := d.Decode(&fields); err != nil {
			return fmt.Errorf("read a list: %w", err)
		}
		if fields = edit(fields); fields == nil {
			continue
		}
		if _, err := io.WriteString(w, separator); err != nil {
			return err
		}
		separator = ","
		if err := encoder.Encode(fields); err != nil {
			return err
		}
	}
	if separator == "[" {
		if _, err := io.WriteString(w, separator); err != nil {
			return err
		}
	}
	if err := expect(d, ']'); err != nil {
		return err
	}
	_, err := io.WriteString(w, "]")
	return err
}

// expect reads a delimiter.
func expect(d *json.Decoder, want json.Delim) error {
	switch got, err := d.Token(); {
	case err != nil:
		return fmt.Errorf("read a list: %w", err)
	case got != want:
		return fmt.Errorf("read a list: expected %q, got %v", want, got)
	}
	return nil
}
