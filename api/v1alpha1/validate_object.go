package v1alpha1

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// ValidateObject returns an error, with the field's path, for an object that the controller cannot
// deploy. An API server with CEL rules in its CustomResourceDefinitions (1.25 and later) refuses
// such an object itself.
func (s *CustomScheduler) ValidateObject() error {
	if err := s.Validate(); err != nil {
		return err
	}
	if path, field := findField("spec", reflect.ValueOf(s.Spec), isSetFile); path != "" {
		return &Error{text: path + " is not valid in an object", hint: field.Tag.Get("object")}
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
	if r := spec.Rollout; r != nil {
		if _, gated := r.Gate(GateAgreement); gated {
			return &Error{text: "spec.rollout.gates: " + GateAgreement +
				" is not valid in an object: the controller runs no shadow",
				hint: "compare the decisions with `pmk-sched shadow` before"}
		}
	}
	if spec.Releases == nil {
		if !spec.UsesOwnImage() && (spec.Image.Reference == "" || spec.Source.Branch == "" || spec.Source.Branch == Auto) {
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

// isSetFile reports whether a field with the tag object is set.
func isSetFile(_ reflect.Value, field reflect.StructField, value reflect.Value) bool {
	return field.Tag.Get("object") != "" && !value.IsZero()
}

// findField returns the path and the type of the first field in a struct for which found returns
// true, or an empty path.
func findField(path string, v reflect.Value, found func(of reflect.Value, field reflect.StructField,
	value reflect.Value) bool) (at string, field reflect.StructField) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return findField(path, v.Elem(), found)
		}
	case reflect.Slice:
		for i := range v.Len() {
			if at, field = findField(fmt.Sprintf("%s[%d]", path, i), v.Index(i), found); at != "" {
				return at, field
			}
		}
	case reflect.Struct:
		for field, value := range v.Fields() {
			if !field.IsExported() {
				continue
			}
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			inner := path + "." + name
			if found(v, field, value) {
				return inner, field
			}
			if at, field := findField(inner, value, found); at != "" {
				return at, field
			}
		}
	}
	return "", reflect.StructField{}
}
