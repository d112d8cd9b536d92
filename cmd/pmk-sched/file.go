package main

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
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	fileAPIVersion = "pmk-sched.io/v1alpha1"
	fileKind       = "CustomScheduler"
)

// customScheduler is pmk-sched.yaml: everything about one scheduler in one
// file. Flags win over it.
type customScheduler struct {
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

	// dir is where the file is: paths in it are relative to that.
	dir string
}

// readCustomScheduler reads pmk-sched.yaml strictly: an unknown field, a field
// given twice or a second document is an error with its line. Empty name: an
// empty customScheduler.
func readCustomScheduler(name string) (*customScheduler, error) {
	if name == "" {
		return &customScheduler{}, nil
	}
	text, err := readFile("-f", name)
	if err != nil {
		return nil, err
	}
	f, err := parseCustomScheduler(name, text)
	if err != nil {
		return nil, err
	}
	f.dir = filepath.Dir(name)
	return f, nil
}

func parseCustomScheduler(name string, text []byte) (*customScheduler, error) {
	f := &customScheduler{}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(f); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, usagef("", "read %s: it holds no document", name)
		}
		return nil, usagef("", "read %s: %s", name, yamlProblem(err))
	}
	if err := dec.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, usagef("keep one scheduler in one file", "read %s: it holds a second document", name)
	}
	if f.APIVersion != fileAPIVersion || f.Kind != fileKind {
		return nil, usagef(fmt.Sprintf("it begins with apiVersion: %s and kind: %s", fileAPIVersion, fileKind),
			"read %s: it is %s %q, not a %s", name, f.APIVersion, f.Kind, fileKind)
	}
	given := 0
	for _, set := range []bool{f.Spec.Configuration.Preset != "", f.Spec.Configuration.File != "", !f.Spec.Configuration.Inline.IsZero()} {
		if set {
			given++
		}
	}
	if given > 1 {
		return nil, usagef("", "read %s: spec.configuration has more than one of preset, file and inline", name)
	}
	return f, f.checkExtenders()
}

// inType is how the YAML library names Go types, which mean nothing to a person.
var inType = regexp.MustCompile(` (in|into) (type )?(main\.|struct \{)[^\n]*`)

func yamlProblem(err error) string {
	var typeError *yaml.TypeError
	if errors.As(err, &typeError) {
		problems := make([]string, 0, len(typeError.Errors))
		for _, p := range typeError.Errors {
			p = inType.ReplaceAllString(p, "")
			if line, field, ok := strings.Cut(p, ": field "); ok {
				p = line + ": unknown field " + strings.TrimSuffix(field, " not found")
			}
			problems = append(problems, p)
		}
		return strings.Join(problems, "; ")
	}
	return strings.TrimPrefix(err.Error(), "yaml: ")
}

// configuration returns the scheduler configuration that the file holds or
// names, with the name to use in messages; nil if it names a preset or nothing.
func (f *customScheduler) configuration() (text []byte, name string, err error) {
	c := f.Spec.Configuration
	switch {
	case c.File != "":
		name = c.File
		if !filepath.IsAbs(name) {
			name = filepath.Join(f.dir, name)
		}
		text, err = os.ReadFile(name)
		if err != nil {
			return nil, "", usagef("", "read spec.configuration.file: %s", err)
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
func (f *customScheduler) resources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: f.Spec.Resources.Requests.list(), Limits: f.Spec.Resources.Limits.list()}
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
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %q is neither a number above 0 nor auto", node.Line, node.Value)}}
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
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %q is no quantity such as 100m or 64Mi", node.Line, node.Value)}}
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

// imageReference is the image that the file names: of its tag, or of one named
// as the release is, and its plugins by suffix.
func (f *customScheduler) imageReference(suffix string) string {
	i := f.Spec.Image
	switch {
	case i.Repository == "":
		return ""
	case i.Tag == "":
		return i.Repository + tagOfRelease + suffix
	default:
		return i.Repository + ":" + i.Tag
	}
}

// baseUnless is the base that the file names, unless a flag gave a busybox.
func (f *customScheduler) baseUnless(busybox string) string {
	if busybox != "" {
		return ""
	}
	return f.Spec.Image.Base
}
