// Package spec reads pmk-sched.yaml and the flags of a command, once, and resolves them into one value. Flags win over the
// file.
package spec

import (
	"cmp"
	"io"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/replace"
)

// DefaultNamespace has the objects of a scheduler if no other is given.
const DefaultNamespace = "kube-system"

// Flags are the flags that describe a scheduler. A zero value is a flag that was not given.
type Flags struct {
	// File is pmk-sched.yaml; "-" is Stdin. Relative paths in a file that is not regular start at the working directory.
	File  string
	Stdin io.Reader

	Name, Namespace, Image, PullPolicy  string
	Config, Preset, Credentials, Branch string
	Replicas, Port                      *int
	PolicyConfigMap                     *bool
	Lossy                               bool
	NodeSelector, Plugins               []string
	// Configuration is a configuration in place of Config, and ConfigurationName its name in messages.
	Configuration     []byte
	ConfigurationName string
	// Given are the flags to record, as --name=value.
	Given []string
	// Version of pmk-sched, recorded in a label.
	Version string
}

// Spec is the resolved request.
type Spec struct {
	// Name and Namespace of the scheduler; the name may be empty.
	Name, Namespace string
	// Branch is the release to build or to render for, or "auto".
	Branch string

	file  *document
	flags Flags
}

// Read reads the file and resolves what every command needs.
func Read(f Flags) (*Spec, error) {
	d, err := readDocument(f.File, f.Stdin)
	if err != nil {
		return nil, err
	}
	return resolve(f, d), nil
}

func resolve(f Flags, d *document) *Spec {
	return &Spec{
		Name:      cmp.Or(f.Name, d.Metadata.Name),
		Namespace: cmp.Or(f.Namespace, d.Metadata.Namespace, DefaultNamespace),
		Branch:    cmp.Or(f.Branch, d.Spec.Source.Branch, pack.BranchAuto),
		file:      d, flags: f,
	}
}

// RequireName returns an error if neither the flags nor the file name the scheduler.
func (s *Spec) RequireName() error {
	if s.Name == "" {
		return problem.Invalidf("", "--name is required")
	}
	return nil
}

// Plugins returns the plugins that the user says are in the image; there may be none.
func (s *Spec) Plugins() ([]pack.Plugin, error) { return s.file.plugins(s.flags.Plugins) }

// DeclaresPlugins reports whether a flag says which plugins are in the image.
func (s *Spec) DeclaresPlugins() bool { return len(s.flags.Plugins) > 0 }

// Replacement returns the options to replace the default scheduler of this node with. Node, Names, Timeout and Steady are
// the caller's.
func (s *Spec) Replacement() (replace.Options, error) {
	var o replace.Options
	var err error
	if o.Image, err = s.image(); err != nil {
		return o, err
	}
	if o.Preset, o.Configuration, o.ConfigurationName, err = s.configuration(); err != nil {
		return o, err
	}
	if o.PluginRules, err = s.file.rules(); err != nil {
		return o, err
	}
	o.PolicyConfigMap = s.policyConfigMap()
	o.Extenders, err = s.file.nodeExtenders()
	return o, err
}
