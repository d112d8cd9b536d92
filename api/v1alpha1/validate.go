package v1alpha1

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Validate returns an error, with the field's path, for a combination of fields that no cluster
// accepts. The names of the scheduler and its image are checked when it is deployed.
func (s *CustomScheduler) Validate() error {
	given := 0
	c := s.Spec.Configuration
	for _, set := range []bool{c.Preset != "", c.File != "", c.Inline != ""} {
		if set {
			given++
		}
	}
	if given > 1 {
		return &Error{text: "spec.configuration has more than one of preset, file and inline"}
	}
	if s.Spec.AnyNode && len(s.Spec.NodeSelector) > 0 {
		return &Error{text: "spec.anyNode and spec.nodeSelector exclude each other"}
	}
	for i, toleration := range s.Spec.Tolerations {
		if err := toleration.validate(); err != nil {
			err.text = fmt.Sprintf("spec.tolerations[%d]: %s", i, err.text)
			return err
		}
	}
	if name := s.Spec.PriorityClassName; name != "" {
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			return &Error{text: fmt.Sprintf("spec.priorityClassName: invalid name %q: %s", name, problems[0])}
		}
	}
	if err := s.ValidateRoute(); err != nil {
		return err
	}
	if err := s.ValidateRollout(); err != nil {
		return err
	}
	for i, plugin := range s.Spec.Source.Plugins {
		if err := plugin.validate(); err != nil {
			err.text = fmt.Sprintf("spec.source.plugins[%d]: %s", i, err.text)
			return err
		}
	}
	return s.validateExtenders()
}

// validate checks that the plugin has exactly one source.
func (p Plugin) validate() *Error {
	var given []string
	for _, field := range []struct{ name, value string }{{"builtin", p.Builtin}, {"module", p.Module}, {"path", p.Path}} {
		if field.value != "" {
			given = append(given, field.name)
		}
	}
	switch {
	case len(given) == 0:
		return &Error{text: "one of builtin, module and path is required"}
	case len(given) > 1:
		return &Error{text: strings.Join(given, " and ") + " exclude each other"}
	case p.Name != "" && p.Builtin == "":
		return &Error{text: "name is valid with builtin only", hint: "change the constant Name of the plugin"}
	case p.Package != "" && p.Module == "":
		return &Error{text: "package is valid with module only", hint: "set path to the package's own directory"}
	case p.Module != "" && !strings.Contains(p.Module+p.Package, "@"):
		return &Error{text: fmt.Sprintf("module %s has no version", p.Module),
			hint: "write it as sigs.k8s.io/scheduler-plugins@v0.32.7"}
	}
	return nil
}

// validate refuses what the API server refuses in every release (pkg/apis/core/validation,
// ValidateTolerations).
func (t Toleration) validate() *Error {
	exists := t.Operator == corev1.TolerationOpExists
	switch {
	case t.Key == "" && !exists:
		return &Error{text: "key is required, or operator Exists for the taints of every key"}
	case exists && t.Value != "":
		return &Error{text: "operator Exists excludes a value"}
	case !slices.Contains([]corev1.TolerationOperator{"", corev1.TolerationOpEqual, corev1.TolerationOpExists,
		corev1.TolerationOpLt, corev1.TolerationOpGt}, t.Operator):
		return &Error{text: fmt.Sprintf("invalid operator %q", t.Operator), hint: "use Equal or Exists"}
	case !slices.Contains([]corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule,
		corev1.TaintEffectNoExecute}, t.Effect):
		return &Error{text: fmt.Sprintf("invalid effect %q", t.Effect),
			hint: "use NoSchedule, PreferNoSchedule or NoExecute, or leave it out for every effect"}
	case t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute:
		return &Error{text: "tolerationSeconds requires effect NoExecute"}
	}
	return nil
}

// validateExtenders checks the extenders' names, which become names of files and objects.
func (s *CustomScheduler) validateExtenders() error {
	seen := map[string]bool{}
	for i, e := range s.Spec.Extenders {
		if e.Name == "" {
			return &Error{text: fmt.Sprintf("spec.extenders[%d]: the name is required", i),
				hint: "for example name: my-extender; messages use it"}
		}
		if problems := validation.IsDNS1123Label(e.Name); len(problems) > 0 {
			return &Error{
				text: fmt.Sprintf("spec.extenders[%d]: the name %q is not a DNS label: %s", i, e.Name,
					strings.Join(problems, "; ")),
				hint: "use lower-case letters, digits and '-'",
			}
		}
		if seen[e.Name] {
			return &Error{text: fmt.Sprintf("spec.extenders: duplicate name %q", e.Name)}
		}
		seen[e.Name] = true
	}
	return nil
}
