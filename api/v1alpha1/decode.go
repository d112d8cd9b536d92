package v1alpha1

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Error is a problem in a file, with advice for the user, which may be empty.
type Error struct {
	text, hint string
}

// Error returns the problem.
func (e *Error) Error() string { return e.text }

// Hint returns the advice.
func (e *Error) Hint() string { return e.hint }

// Decode reads pmk-sched.yaml strictly: an unknown field, a duplicate field and a second document
// are errors with their lines. It does not validate: see [CustomScheduler.Validate].
func Decode(text []byte) (*CustomScheduler, error) {
	var file struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
		Metadata   struct {
			Name      string `yaml:"name"`
			Namespace string `yaml:"namespace"`
		} `yaml:"metadata"`
		Spec CustomSchedulerSpec `yaml:"spec"`
	}
	if err := checkGivenType(text, Kind, ""); err != nil {
		return nil, err
	}
	if err := decodeOnly(text, &file, "scheduler"); err != nil {
		return nil, err
	}
	if err := checkType(file.APIVersion, file.Kind, Kind, ""); err != nil {
		return nil, err
	}
	s := &CustomScheduler{Spec: file.Spec}
	s.APIVersion, s.Kind, s.Name, s.Namespace = APIVersion, Kind, file.Metadata.Name, file.Metadata.Namespace
	return s, nil
}

// decodeOnly reads a file's only document strictly. thing names the file's content.
func decodeOnly(text []byte, into any, thing string) error {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(into); err != nil {
		if errors.Is(err, io.EOF) {
			return &Error{text: "the file is empty"}
		}
		return describe(err)
	}
	if err := dec.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return &Error{text: "the file has a second document", hint: "keep one " + thing + " in one file"}
	}
	return nil
}

// checkType returns an error for another file type. If the hint is empty, it says how such a file
// begins.
func checkType(apiVersion, kind, want, hint string) error {
	if apiVersion == APIVersion && kind == want {
		return nil
	}
	if hint == "" {
		hint = fmt.Sprintf("start the file with apiVersion: %s and kind: %s", APIVersion, want)
	}
	return &Error{text: fmt.Sprintf("expected a %s, got %s %q", want, apiVersion, kind), hint: hint}
}

// checkGivenType returns an error if a file names another type: the fields of another type are not
// unknown fields.
func checkGivenType(text []byte, want, hint string) error {
	var file struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
	}
	_ = yaml.Unmarshal(text, &file) // the decoding that follows reports the error
	if file.Kind == "" {
		return nil
	}
	return checkType(file.APIVersion, file.Kind, want, hint)
}

// goTypes matches the Go types in messages of the YAML library.
var goTypes = regexp.MustCompile(` (in|into) (type )?(v1alpha1\.|struct \{)[^\n]*`)

// describe returns the YAML library's error without the names of Go types.
func describe(err error) error {
	var typeError *yaml.TypeError
	if !errors.As(err, &typeError) {
		var rules *RulesError
		if errors.As(err, &rules) {
			return rules
		}
		return errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	problems := make([]string, 0, len(typeError.Errors))
	for _, p := range typeError.Errors {
		p = goTypes.ReplaceAllString(p, "")
		if line, field, ok := strings.Cut(p, ": field "); ok {
			p = line + ": unknown field " + strings.TrimSuffix(field, " not found")
		}
		problems = append(problems, p)
	}
	return errors.New(strings.Join(problems, "; "))
}
