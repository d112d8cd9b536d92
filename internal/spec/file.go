package spec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

const (
	fileAPIVersion = "pmk-sched.io/v1alpha1"
	fileKind       = "CustomScheduler"
)

// document is pmk-sched.yaml.
type document struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Name      string `yaml:"name"`
		Namespace string `yaml:"namespace"`
	} `yaml:"metadata"`
	Spec struct {
		Source struct {
			Branch  string        `yaml:"branch"`
			From    string        `yaml:"from"`
			Plugins []pluginEntry `yaml:"plugins"`
			Imports []string      `yaml:"imports"`
		} `yaml:"source"`
		Image struct {
			Repository string   `yaml:"repository"`
			Tag        string   `yaml:"tag"`
			Base       string   `yaml:"base"`
			Platforms  []string `yaml:"platforms"`
			PullPolicy string   `yaml:"pullPolicy"`
		} `yaml:"image"`
		Configuration struct {
			Preset string    `yaml:"preset"`
			File   string    `yaml:"file"`
			Inline yaml.Node `yaml:"inline"`

			PolicyConfigMap bool `yaml:"policyConfigMap"`
		} `yaml:"configuration"`
		Extenders    []extenderEntry   `yaml:"extenders"`
		Credentials  string            `yaml:"credentials"`
		Replicas     autoInt           `yaml:"replicas"`
		NodeSelector map[string]string `yaml:"nodeSelector"`
		Args         []string          `yaml:"args"`
		Ports        struct {
			Secure autoInt `yaml:"secure"`
		} `yaml:"ports"`
		Resources struct {
			Requests quantities `yaml:"requests"`
			Limits   quantities `yaml:"limits"`
		} `yaml:"resources"`
		RBAC struct {
			Rules yaml.Node `yaml:"rules"`
		} `yaml:"rbac"`
	} `yaml:"spec"`

	// dir is the directory that relative paths start from.
	dir string
	// regular reports whether the document comes from a file that can be read again: not from standard input or a pipe.
	regular bool
}

// readDocument reads pmk-sched.yaml once. "-" is standard input; an empty name gives an empty document.
func readDocument(name string, stdin io.Reader) (*document, error) {
	switch name {
	case "":
		return &document{}, nil
	case "-":
		text, err := io.ReadAll(stdin)
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return parseDocument("standard input", text)
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, problem.Invalidf("", "read -f: %s", strings.Replace(err.Error(), "stat ", "open ", 1))
	}
	text, err := ReadFile("-f", name)
	if err != nil {
		return nil, err
	}
	d, err := parseDocument(name, text)
	if err == nil && info.Mode().IsRegular() {
		d.dir, d.regular = filepath.Dir(name), true
	}
	return d, err
}

// ReadFile reads the file that a flag names. An empty name gives nil.
func ReadFile(flag, name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, problem.Invalidf("", "read %s: %w", flag, err)
	}
	if len(text) == 0 {
		return nil, problem.Invalidf("", "read %s: %s is empty", flag, name)
	}
	return text, nil
}

// parseDocument parses strictly: an unknown field, a field given twice or a second document is an error with its line.
func parseDocument(name string, text []byte) (*document, error) {
	d := &document{}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(d); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, problem.Invalidf("", "read %s: the file is empty", name)
		}
		return nil, problem.Invalidf("", "read %s: %s", name, describeYAML(err))
	}
	if err := dec.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, problem.Invalidf("keep one scheduler in one file", "read %s: the file has a second document", name)
	}
	if d.APIVersion != fileAPIVersion || d.Kind != fileKind {
		return nil, problem.Invalidf(fmt.Sprintf("start the file with apiVersion: %s and kind: %s", fileAPIVersion, fileKind),
			"read %s: expected a %s, got %s %q", name, fileKind, d.APIVersion, d.Kind)
	}
	given := 0
	for _, set := range []bool{d.Spec.Configuration.Preset != "", d.Spec.Configuration.File != "", !d.Spec.Configuration.Inline.IsZero()} {
		if set {
			given++
		}
	}
	if given > 1 {
		return nil, problem.Invalidf("", "read %s: spec.configuration has more than one of preset, file and inline", name)
	}
	return d, d.checkExtenders()
}

// goTypes matches the Go types in messages of the YAML library.
var goTypes = regexp.MustCompile(` (in|into) (type )?(spec\.|struct \{)[^\n]*`)

func describeYAML(err error) string {
	var typeError *yaml.TypeError
	if errors.As(err, &typeError) {
		problems := make([]string, 0, len(typeError.Errors))
		for _, p := range typeError.Errors {
			p = goTypes.ReplaceAllString(p, "")
			if line, field, ok := strings.Cut(p, ": field "); ok {
				p = line + ": unknown field " + strings.TrimSuffix(field, " not found")
			}
			problems = append(problems, p)
		}
		return strings.Join(problems, "; ")
	}
	return strings.TrimPrefix(err.Error(), "yaml: ")
}

// path returns the path of a file that the document names.
func (d *document) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(d.dir, name)
}

// configuration returns the scheduler configuration that the document contains or names, with the name to use in
// messages; nil if it names a preset or nothing.
func (d *document) configuration() (text []byte, name string, err error) {
	c := d.Spec.Configuration
	switch {
	case c.File != "":
		name = d.path(c.File)
		text, err = os.ReadFile(name)
		if err != nil {
			return nil, "", problem.Invalidf("", "read spec.configuration.file: %w", err)
		}
		return text, name, nil
	case !c.Inline.IsZero():
		text, err = yaml.Marshal(&c.Inline)
		if err != nil {
			return nil, "", fmt.Errorf("write spec.configuration.inline: %w", err)
		}
		return text, "spec.configuration.inline", nil
	default:
		return nil, "", nil
	}
}

// resources returns the resources of the scheduler's container.
func (d *document) resources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: d.Spec.Resources.Requests.list(), Limits: d.Spec.Resources.Limits.list()}
}

// rules returns spec.rbac.rules.
func (d *document) rules() ([]rbacv1.PolicyRule, error) {
	if d.Spec.RBAC.Rules.IsZero() {
		return nil, nil
	}
	text, err := yaml.Marshal(&d.Spec.RBAC.Rules)
	if err != nil {
		return nil, fmt.Errorf("write spec.rbac.rules: %w", err)
	}
	var rules []rbacv1.PolicyRule
	line := d.Spec.RBAC.Rules.Line
	if err := sigsyaml.UnmarshalStrict(text, &rules); err != nil {
		return nil, problem.Invalidf("write a list of rules as in a ClusterRole: apiGroups, resources, verbs",
			"line %d: spec.rbac.rules: %s", line, strings.TrimPrefix(err.Error(), "error unmarshaling JSON: while decoding JSON: "))
	}
	for i, rule := range rules {
		if len(rule.Verbs) == 0 || len(rule.Resources)+len(rule.NonResourceURLs) == 0 || len(rule.Resources) > 0 && len(rule.APIGroups) == 0 {
			return nil, problem.Invalidf("", "line %d: spec.rbac.rules[%d] needs verbs, and apiGroups and resources, or nonResourceURLs", line, i)
		}
	}
	return rules, nil
}

// autoInt is a number, or "auto", which is 0.
type autoInt int

// UnmarshalYAML reads a number or the word auto.
func (a *autoInt) UnmarshalYAML(node *yaml.Node) error {
	if node.Value == "auto" || node.Value == "" {
		return nil
	}
	n, err := strconv.Atoi(node.Value)
	if err != nil || n < 1 {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: invalid value %q: must be a number above 0, or auto", node.Line, node.Value)}}
	}
	*a = autoInt(n)
	return nil
}

// quantities are amounts of resources, such as cpu: 100m.
type quantities map[string]quantity

type quantity struct{ resource.Quantity }

// UnmarshalYAML reads a quantity in Kubernetes' notation.
func (q *quantity) UnmarshalYAML(node *yaml.Node) error {
	parsed, err := resource.ParseQuantity(node.Value)
	if err != nil {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: invalid quantity %q: must be a value such as 100m or 64Mi", node.Line, node.Value)}}
	}
	q.Quantity = parsed
	return nil
}

func (q quantities) list() corev1.ResourceList {
	if len(q) == 0 {
		return nil
	}
	list := corev1.ResourceList{}
	for name, amount := range q {
		list[corev1.ResourceName(name)] = amount.Quantity
	}
	return list
}
