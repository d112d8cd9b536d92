// Package spec reads pmk-sched.yaml and a command's flags, once, and resolves them into one
// request. Flags win over the file.
package spec

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// DefaultNamespace is a scheduler's namespace if no other is given.
const DefaultNamespace = "kube-system"

// AnyNode is the node selector that lets the scheduler run on every node.
const AnyNode = "any"

// Flags are the flags that describe a scheduler. A zero value is a flag that was not given.
type Flags struct {
	// File is pmk-sched.yaml; "-" is Stdin. Relative paths in a file that is not regular start at the
	// working directory. FileFlag is the flag that names the file, by default -f.
	File, FileFlag string
	Stdin          io.Reader

	Name, Namespace, Image, PullPolicy  string
	Config, Preset, Credentials, Branch string
	// RequireSignature is a public key's file, or [v1alpha1.NoSignature].
	RequireSignature      string
	Replicas, Port        *int
	PolicyConfigMap       *bool
	Lossy                 bool
	NodeSelector, Plugins []string
	// Route are the parts of a route, PART=VALUE each, or [NoRoute].
	Route []string
	// Steps and Gates of a rollout, in place of the file's.
	Steps, Gates []string
	// CacheDir is the build cache, where recorded plugins are unpacked.
	CacheDir string
	// Version of pmk-sched, recorded in a label.
	Version string
}

// Spec is the resolved request.
type Spec struct {
	// Name and Namespace of the scheduler; the name may be empty.
	Name, Namespace string
	// Branch is the release to build or to render for, or "auto".
	Branch string

	request *v1alpha1.CustomScheduler // the file, changed by the flags
	chosen  bool                      // the credentials were chosen by pmk-sched
	asked   bool                      // the credentials were chosen by this machine's user
	file    *document
	flags   Flags
	// again is the origin of the record that the spec was made from with [Spec.Again], or empty.
	// targeted is set if the user named the image to build.
	again    string
	targeted bool
	// keepImages is set by [Spec.KeepImages].
	keepImages bool
}

// Read reads the file and resolves it and the flags into a Spec.
func Read(f Flags) (*Spec, error) {
	d, err := readDocument(cmp.Or(f.FileFlag, "-f"), f.File, f.Stdin)
	if err != nil {
		return nil, err
	}
	return resolve(f, d)
}

// resolve returns a document's request with the flags on top.
func resolve(f Flags, d *document) (*Spec, error) {
	r := d.DeepCopy()
	s := &Spec{request: r, file: d, flags: f}
	r.APIVersion, r.Kind = v1alpha1.APIVersion, v1alpha1.Kind
	r.Name = cmp.Or(f.Name, r.Name)
	r.Namespace = cmp.Or(f.Namespace, r.Namespace, DefaultNamespace)
	r.Spec.Source.Branch = cmp.Or(f.Branch, r.Spec.Source.Branch, pack.BranchAuto)
	if d.regular {
		r.Annotations = map[string]string{v1alpha1.AnnotationFile: f.File}
	}
	if f.Image != "" {
		r.Spec.Image.Reference = f.Image
	}
	key, err := d.keyFile()
	if err != nil {
		return nil, err
	}
	r.Spec.Image.RequireSignature = cmp.Or(f.RequireSignature, key)
	r.Spec.Image.PullPolicy = cmp.Or(f.PullPolicy, r.Spec.Image.PullPolicy)
	r.Spec.Credentials = cmp.Or(f.Credentials, r.Spec.Credentials)
	s.asked = asksForCredentials(f, d)
	if err := f.configure(&r.Spec.Configuration); err != nil {
		return nil, err
	}
	if r.Spec.Source.Plugins, err = d.plugins(f.Plugins); err != nil {
		return nil, err
	}
	if r.Spec.Route, err = f.route(r.Spec.Route); err != nil {
		return nil, err
	}
	if r.Spec.Rollout, err = f.rollout(r.Spec.Rollout); err != nil {
		return nil, err
	}
	if err := cmp.Or(r.ValidateRoute(), r.ValidateRollout()); err != nil {
		return nil, problem.Invalidf("", "%w", err)
	}
	s.Name, s.Namespace, s.Branch = r.Name, r.Namespace, r.Spec.Source.Branch
	return s, f.place(&r.Spec)
}

// AsksForCredentials reports whether this machine's user chose the credentials, in a flag or a
// file. A record does not count: no record leads this node's key into another cluster.
func (s *Spec) AsksForCredentials() bool { return s.asked }

func asksForCredentials(f Flags, d *document) bool {
	return deploy.IsChosen(f.Credentials) || d.local && deploy.IsChosen(d.Spec.Credentials)
}

// configure changes the configuration: a flag overrides any kind of configuration in the document.
func (f Flags) configure(c *v1alpha1.Configuration) error {
	switch {
	case f.Config != "" && f.Preset != "":
		return problem.Invalidf("", "--config and --preset exclude each other")
	case f.Config != "":
		c.Preset, c.File, c.Inline = "", f.Config, ""
	case f.Preset != "":
		c.Preset, c.File, c.Inline = f.Preset, "", ""
	}
	if f.PolicyConfigMap != nil {
		c.PolicyConfigMap = *f.PolicyConfigMap
	}
	c.Lossy = c.Lossy || f.Lossy
	if c.Preset != "" {
		return profiles.CheckPreset(c.Preset) // before anything is started for it
	}
	return nil
}

// place changes the nodes, the replicas and the port.
func (f Flags) place(r *v1alpha1.CustomSchedulerSpec) error {
	if f.Replicas != nil {
		if *f.Replicas < 1 {
			return problem.Invalidf("leave it out for one on each control-plane node",
				"invalid --replicas %d: must be at least 1", *f.Replicas)
		}
		r.Replicas = v1alpha1.AutoInt(*f.Replicas)
	}
	if f.Port != nil {
		if *f.Port < 1 || *f.Port > 65535 {
			return problem.Invalidf("leave it out for the first free port", "invalid --port %d: must be between 1 and 65535",
				*f.Port)
		}
		r.Ports.Secure = v1alpha1.AutoInt(*f.Port)
	}
	selector, anyNode, err := nodeSelector(f.NodeSelector)
	if err == nil && (selector != nil || anyNode) {
		r.NodeSelector, r.AnyNode = selector, anyNode
	}
	return err
}

// nodeSelector parses the values for --node-selector: KEY=VALUE, or AnyNode alone.
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
			return nil, false, problem.Invalidf("write --node-selector KEY=VALUE, KEY= for an empty value, or "+AnyNode,
				"invalid --node-selector %q: must be KEY=VALUE", pair)
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = value
	}
	return labels, false, nil
}

// RequireName returns an error if neither the flags nor the file name the scheduler.
func (s *Spec) RequireName() error {
	if s.Name == "" {
		return problem.Invalidf("", "--name is required")
	}
	return nil
}

// Plugins returns the plugins that the user says are in the image; there may be none.
func (s *Spec) Plugins() ([]pack.Plugin, error) { return s.packPlugins(s.request.Spec.Source.Plugins) }

// Named returns the spec for a scheduler with that name.
func (s *Spec) Named(name, namespace string) *Spec {
	other := *s
	other.request = s.request.DeepCopy()
	other.Name, other.Namespace, other.request.Name, other.request.Namespace = name, namespace, name, namespace
	return &other
}

// GivenImage returns the image from the flags, or "".
func (s *Spec) GivenImage() string { return s.flags.Image }

// GivesBranch reports whether a flag names the branch.
func (s *Spec) GivesBranch() bool { return s.flags.Branch != "" }

// WithImage returns the spec with another image.
func (s *Spec) WithImage(image string) *Spec {
	other := *s
	other.request = s.request.DeepCopy()
	other.request.Spec.Image.Reference, other.flags.Image = image, image
	return &other
}

// WithBranch returns the spec for another branch.
func (s *Spec) WithBranch(branch string) *Spec {
	other := *s
	other.request = s.request.DeepCopy()
	other.Branch, other.request.Spec.Source.Branch = branch, branch
	return &other
}
