package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// isJSON reports whether a file that begins with start is JSON: an object whose first key is
// quoted, which flow style in YAML is not.
func isJSON(start []byte) bool {
	const space = " \t\r\n"
	rest, ok := bytes.CutPrefix(bytes.TrimLeft(start, space), []byte("{"))
	rest = bytes.TrimLeft(rest, space)
	return ok && len(rest) > 0 && (rest[0] == '"' || rest[0] == '}')
}

// eachJSON calls do with each object of a stream of objects and lists. Of a list only one item is
// in memory.
func eachJSON(r io.Reader, do func(map[string]any) error) error {
	in := json.NewDecoder(r)
	in.UseNumber()
	for {
		start, err := in.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && start != json.Delim('{') {
			err = fmt.Errorf("expected an object, got %v", start)
		}
		if err == nil {
			err = jsonObject(in, do)
		}
		if err != nil {
			return invalidSyntax("JSON", err)
		}
	}
}

// invalidSyntax marks an error of a decoder as one of the input.
func invalidSyntax(format string, err error) error {
	var known interface{ Invalid() bool }
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &syntax), errors.As(err, &kind), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return problem.Invalidf("", "%s: %w", format, err)
	}
	return err
}

// jsonObject reads the rest of an object: a list, or an object to hand over.
func jsonObject(in *json.Decoder, do func(map[string]any) error) error {
	whole := map[string]any{}
	list := false
	for in.More() {
		token, err := in.Token()
		if err != nil {
			return err
		}
		field := token.(string) // the key of an object
		if kind, _ := whole["kind"].(string); field == "items" && (kind == "" || strings.HasSuffix(kind, "List")) {
			list = true
			if err := jsonItems(in, whole, do); err != nil {
				return err
			}
			continue
		}
		var value any
		if err := in.Decode(&value); err != nil {
			return err
		}
		whole[field] = value
	}
	if _, err := in.Token(); err != nil || list {
		return err
	}
	return do(whole)
}

// jsonItems reads the items of a list.
func jsonItems(in *json.Decoder, list map[string]any, do func(map[string]any) error) error {
	start, err := in.Token()
	if err != nil || start == nil {
		return err
	}
	if start != json.Delim('[') {
		return problem.Invalidf("", "items: expected a list, got %v", start)
	}
	for in.More() {
		var item map[string]any
		if err := in.Decode(&item); err != nil {
			return err
		}
		if err := addItem(list, item, do); err != nil {
			return err
		}
	}
	_, err = in.Token()
	return err
}

// addItem hands over an item. The items of a typed list, as the API server returns it, get their
// type from the list.
func addItem(list, item map[string]any, do func(map[string]any) error) error {
	if item == nil {
		return problem.Invalidf("", "items: expected an object, got null")
	}
	if kind, _ := list["kind"].(string); item["kind"] == nil && kind != "List" {
		item["kind"], item["apiVersion"] = strings.TrimSuffix(kind, "List"), list["apiVersion"]
	}
	return do(item)
}
