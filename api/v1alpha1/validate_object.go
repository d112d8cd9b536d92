package v1alpha1

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// ValidateObject returns an error, with the path of the field, for an object that the controller
// cannot deploy. An API server with CEL rules in its CustomResourceDefinitions (1.25 and later)
// refuses such an object itself.
func (s *CustomScheduler) ValidateObject() error {
	if err := s.Validate(); err != nil {
		return err
	}
	if path, reason := fileField("spec", reflect.ValueOf(s.Spec)); path != "" {
		return &Error{text: path + " is not valid in an object", hint: reason}
	}
	spec := s.Spec
	if !slices.Contains([]string{"", Auto, "serviceaccount"}, spec.Credentials) {
		return &Error{text: fmt.Sprintf("spec.credentials: %s needs the files of a node", spec.Credentials),
			hint: "use serviceaccount"}
	}
	if key := spec.Image.RequireSignature; key != "" && key != NoSignature && !strings.HasPrefix(key, pemPrefix) {
		return &Error{text: "spec.image.requireSignature is not a PEM-encoded public key"}
	}
	for i, e := range spec.Extenders {
		if e.TLSConfig != nil && e.TLSConfig.CA != "" && e.TLSConfig.CA != CAAuto {
			return &Error{text: fmt.Sprintf("spec.extenders[%d].tlsConfig.ca names a file, which is not valid in an object", i),
				hint: "use auto, or leave it out"}
		}
	}
	if spec.Releases == nil {
		if spec.Image.Reference == "" || spec.Source.Branch == "" || spec.Source.Branch == Auto {
			return &Error{text: "spec.releases is required, or spec.image.reference and spec.source.branch"}
		}
		return nil
	}
	return spec.Releases.validate()
}

const pemPrefix = "-----BEGIN "

func (r *Releases) validate() error {
	given := 0
	for _, set := range []bool{len(r.Items) > 0, r.ConfigMap != nil, r.OCI != ""} {
		if set {
			given++
		}
	}
	switch {
	case given != 1:
		return &Error{text: "spec.releases requires exactly one of items, configMap and oci"}
	case r.PublicKey != "" && r.OCI == "":
		return &Error{text: "spec.releases.publicKey requires oci",
			hint: "spec.image.requireSignature is the key of the images"}
	case r.OCI != "" && !strings.Contains(r.OCI, "@sha256:"):
		return &Error{text: fmt.Sprintf("spec.releases.oci: %s has no digest", r.OCI),
			hint: "write NAME@sha256:DIGEST"}
	}
	if len(r.Items) > 0 {
		if err := (&SchedulerReleases{Releases: r.Items}).Validate(); err != nil {
			return fmt.Errorf("spec.%w", err)
		}
	}
	return nil
}

// fileField returns the path of the first field with the tag object that is set, and the text of
// the tag.
func fileField(path string, v reflect.Value) (field, reason string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return fileField(path, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			if field, reason = fileField(fmt.Sprintf("%s[%d]", path, i), v.Index(i)); field != "" {
				return field, reason
			}
		}
	case reflect.Struct:
		for tagged, value := range v.Fields() {
			if !tagged.IsExported() {
				continue
			}
			name, _, _ := strings.Cut(tagged.Tag.Get("json"), ",")
			inner := path + "." + name
			if reason := tagged.Tag.Get("object"); reason != "" && !value.IsZero() {
				return inner, reason
			}
			if field, reason = fileField(inner, value); field != "" {
				return field, reason
			}
		}
	}
	return "", ""
}
