package spec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
)

// AnyNode is the node selector that lets the scheduler run on every node.
const AnyNode = "any"

// Scheduler returns the options to install the scheduler with.
func (s *Spec) Scheduler() (deploy.Options, error) {
	d, f := s.file, s.flags
	o := deploy.Options{
		Name: s.Name, Namespace: s.Namespace,
		PullPolicy:  cmp.Or(f.PullPolicy, d.Spec.Image.PullPolicy),
		Branch:      s.Branch,
		Credentials: cmp.Or(f.Credentials, d.Spec.Credentials, deploy.Auto),
		Replicas:    int(d.Spec.Replicas),
		Port:        int(d.Spec.Ports.Secure),
		Lossy:       f.Lossy,
		Resources:   d.resources(),
		Args:        d.Spec.Args,

		PolicyConfigMap: s.policyConfigMap(),
		Version:         f.Version,
		Now:             time.Now(),
	}
	var err error
	if o.Image, err = s.image(); err != nil {
		return o, err
	}
	if f.Replicas != nil {
		if o.Replicas = *f.Replicas; o.Replicas < 1 {
			return o, problem.Invalidf("leave it out for one on each control-plane node", "invalid --replicas %d: must be at least 1", o.Replicas)
		}
	}
	if f.Port != nil {
		if o.Port = *f.Port; o.Port < 1 || o.Port > 65535 {
			return o, problem.Invalidf("leave it out for the first free port", "invalid --port %d: must be between 1 and 65535", o.Port)
		}
	}
	if o.NodeSelector, o.AnyNode, err = nodeSelector(f.NodeSelector); err != nil {
		return o, err
	}
	if o.NodeSelector == nil && !o.AnyNode {
		o.NodeSelector = maps.Clone(d.Spec.NodeSelector)
	}
	if err := o.Validate(); err != nil {
		return o, err
	}
	if o.Extenders, o.ExtenderClients, err = d.calledExtenders(); err != nil {
		return o, err
	}
	if o.PluginRules, err = d.rules(); err != nil {
		return o, err
	}
	o.Flags = s.recordedFlags()
	o.Preset, o.Configuration, o.ConfigurationName, err = s.configuration()
	return o, err
}

// Simulated is a scheduler to run without a cluster.
type Simulated struct {
	// Name is that of the scheduler; empty: the default scheduler.
	Name string
	// Branch is the release, or [pack.BranchAuto].
	Branch string
	// Plugins and Imports are compiled in.
	Plugins []pack.Plugin
	Imports []string
	// Preset or Configuration is what it is configured with; ConfigurationName is the file of the latter.
	Preset            string
	Configuration     []byte
	ConfigurationName string
	Lossy             bool
}

// Simulation returns the scheduler with the plugins of the flags with and imports, or of the file.
func (s *Spec) Simulation(with, imports []string) (Simulated, error) {
	r := Simulated{Name: s.Name, Branch: s.Branch, Imports: imports, Lossy: s.flags.Lossy}
	if len(imports) == 0 {
		r.Imports = s.file.Spec.Source.Imports
	}
	var err error
	if r.Plugins, err = s.file.plugins(with); err != nil {
		return r, err
	}
	r.Preset, r.Configuration, r.ConfigurationName, err = s.configuration()
	return r, err
}

// recordedFlags are those to deploy the same scheduler with again. They are recorded in the form that `build` takes too.
func (s *Spec) recordedFlags() []string {
	var recorded []string
	for _, flag := range s.flags.Given {
		if strings.HasPrefix(flag, "--file=") && !s.file.regular {
			continue
		}
		if plugin, ok := strings.CutPrefix(flag, "--plugins="); ok {
			flag = "--with=" + plugin
		}
		recorded = append(recorded, flag)
	}
	return recorded
}

// image is the requested image, or the one that build makes of the document: plugins are part of its tag.
func (s *Spec) image() (string, error) {
	d := s.file
	if s.flags.Image != "" || d.Spec.Image.Repository == "" || d.Spec.Image.Tag != "" {
		return cmp.Or(s.flags.Image, d.imageReference("")), nil
	}
	list, err := d.plugins(s.flags.Plugins)
	if err != nil {
		return "", err
	}
	suffix, err := pack.TagSuffix(sources(list), d.Spec.Source.Imports)
	return d.imageReference(suffix), err
}

// imageReference is the image of the document: with its tag, or with the release as tag, followed by suffix.
func (d *document) imageReference(suffix string) string {
	i := d.Spec.Image
	switch {
	case i.Repository == "":
		return ""
	case i.Tag == "":
		return i.Repository + ":" + image.ReleaseInTag + suffix
	default:
		return i.Repository + ":" + i.Tag
	}
}

// configuration returns the scheduler configuration. A flag overrides any kind of configuration in the document.
func (s *Spec) configuration() (preset string, text []byte, name string, err error) {
	switch f := s.flags; {
	case f.Config != "" && f.Preset != "":
		return "", nil, "", problem.Invalidf("", "--config and --preset exclude each other")
	case f.Configuration != nil:
		return "", f.Configuration, f.ConfigurationName, nil
	case f.Config != "":
		text, err = ReadFile("--config", f.Config)
		return "", text, f.Config, err
	case f.Preset != "":
		return f.Preset, nil, "", nil
	}
	text, name, err = s.file.configuration()
	return s.file.Spec.Configuration.Preset, text, name, err
}

func (s *Spec) policyConfigMap() bool {
	if given := s.flags.PolicyConfigMap; given != nil {
		return *given
	}
	return s.file.Spec.Configuration.PolicyConfigMap
}

// nodeSelector parses the values of --node-selector: KEY=VALUE, or AnyNode alone.
func nodeSelector(values []string) (labels map[string]string, anyNode bool, err error) {
	if slices.Contains(values, AnyNode) {
		if len(values) > 1 {
			return nil, false, problem.Invalidf("", "--node-selector %s excludes other selectors", AnyNode)
		}
		return nil, true, nil
	}
	for _, pair := range values {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, false, problem.Invalidf("write --node-selector KEY=VALUE, KEY= for an empty value, or "+AnyNode, "invalid --node-selector %q: must be KEY=VALUE", pair)
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = value
	}
	return labels, false, nil
}

// excluded returns an error if one of the flags in given (their names) is set although other excludes it.
func excluded(given []string, other, hint string, names ...string) error {
	for _, name := range names {
		if slices.Contains(given, name) {
			return problem.Invalidf(fmt.Sprintf(hint, name), "--%s and --%s exclude each other", other, name)
		}
	}
	return nil
}
