package v1alpha1

import (
	"fmt"
	"reflect"
	"strings"
)

// Values for the tag file that do not name the field with the file's content.
const (
	fileSelf  = "self"  // the field is the content in a recorded request
	fileBuild = "build" // a build reads the file, and nothing else does
)

// ValidateRecorded returns an error, with the field's path, for a recorded request that no command
// has recorded. Users who may write in the cluster can write it, so it names no file on the machine
// on which a command runs: a field with the tag file needs that file's content. A field that only a
// build reads is left to the build.
func (s *CustomScheduler) ValidateRecorded() error {
	plain := *s
	if c := &plain.Spec.Configuration; c.Inline != "" {
		c.File = ""
	}
	if err := plain.Validate(); err != nil {
		return err
	}
	if path, _ := findField("spec", reflect.ValueOf(s.Spec), lacksContent); path != "" {
		return &Error{text: path + " names a file, whose content is not recorded"}
	}
	for i, p := range s.Spec.Source.Plugins {
		if p.Path == "" && p.Content != nil {
			return &Error{text: fmt.Sprintf("spec.source.plugins[%d] has sources and no path", i)}
		}
	}
	return nil
}

// lacksContent reports whether a field names a file whose content is not part of the struct.
func lacksContent(of reflect.Value, field reflect.StructField, value reflect.Value) bool {
	content := field.Tag.Get("file")
	if content == "" || content == fileBuild || value.IsZero() {
		return false
	}
	if content == fileSelf {
		return value.String() != NoSignature && !strings.HasPrefix(value.String(), pemPrefix)
	}
	ca := field.Name == "CA" && value.String() == CAAuto
	return !ca && of.FieldByName(content).Len() == 0
}
