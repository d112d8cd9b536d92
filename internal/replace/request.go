package replace

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// record describes a replacement in its backup. Whoever can write the node's files can change it.
type record struct {
	// Request is the default scheduler's request. If it names no image or configuration, the
	// scheduler runs with the original one.
	Request *v1alpha1.CustomScheduler `json:"request"`
	// Release of the image's program.
	Release versions.Release `json:"release"`
	// Plugins and Packages are as in [Options].
	Plugins  []profiles.Plugin `json:"plugins,omitempty"`
	Packages map[string]string `json:"packages,omitempty"`
	// OriginalConfig is the path in the container of the configuration that the original scheduler
	// reads. If it is empty, its flags take effect.
	OriginalConfig string `json:"originalConfig,omitempty"`
}

// readRecord reads a backup's record. It is nil in a backup of an older version. The sources of
// plugins are validated when they are built.
func readRecord(b *staticpod.Backup) (*record, error) {
	text, err := b.Record()
	if err != nil || len(text) == 0 {
		return nil, err
	}
	r := &record{}
	if err = json.Unmarshal(text, r); err == nil && r.Request == nil {
		err = errors.New("it has no request")
	}
	if err == nil {
		settings := *r.Request
		settings.Spec.Source = v1alpha1.Source{}
		err = settings.ValidateRecorded()
	}
	if err != nil {
		return nil, problem.Errorf("restore the original scheduler with `pmk-sched restore`",
			"read the record of backup %s: %w", b.Dir(), err)
	}
	return r, nil
}

// requireRecord reads the record of a replacement that is planned again.
func requireRecord(b *staticpod.Backup) (*record, error) {
	r, err := readRecord(b)
	if err == nil && r == nil {
		err = problem.Invalidf("replace it again with `pmk-sched replace` and its flags, --image and --config or --preset",
			"the replacement of the default scheduler of node %s does not record its request", b.Node)
	}
	return r, err
}

// requiredKey returns the backup of a node's replacement, or nil, and the public key that must have
// signed its image, or "".
func requiredKey(files staticpod.Files) (*staticpod.Backup, string, error) {
	b, err := staticpod.Current(files)
	if b == nil || err != nil {
		return nil, "", err
	}
	r, err := readRecord(b)
	if err != nil || r == nil {
		return b, b.RequireSignature, err
	}
	return b, r.Request.Spec.Image.RequireSignature, nil
}

// complete takes what the request leaves open from the replacement that the manifest runs.
func (p *planner) complete(s *scheduler) error {
	p.request = p.o.Request.DeepCopy()
	p.request.Name, p.request.Namespace = corev1.DefaultSchedulerName, metav1.NamespaceSystem
	list, err := staticpod.Backups(p.Files)
	if err != nil {
		return err
	}
	var former *record
	b := replacementOf(staticpod.Open(list), s.file.Data)
	if b != nil {
		if former, err = readRecord(b); err != nil {
			return err
		}
	}
	if former != nil {
		p.keepImage(s, b, former)
		p.keepConfiguration(former.Request.Spec)
	}
	if err := p.findOriginalConfig(s, former); err != nil {
		return err
	}
	kept, err := deploy.WithoutExtenders(p.request, p.o.Extenders, p.o.DropExtenders...)
	p.request.Spec.Extenders = append(kept, p.o.Extenders...)
	return err
}

// replacementOf returns the backup of the replacement in a manifest. In a manifest that another
// program wrote, it is the last replacement that succeeded. It returns nil if there is none.
func replacementOf(open []*staticpod.Backup, manifest []byte) *staticpod.Backup {
	id := staticpod.Replacement(manifest)
	i := slices.IndexFunc(open, func(b *staticpod.Backup) bool {
		return id != "" && b.Replacement == id || id == "" && b.State == staticpod.Replaced
	})
	if i < 0 {
		return nil
	}
	return open[i]
}

// keepImage keeps the former image, if the manifest runs it, with its sources and plugins.
func (p *planner) keepImage(s *scheduler, b *staticpod.Backup, former *record) {
	kept, image := former.Request.Spec, &p.request.Spec.Image
	if p.o.Image != "" || kept.Image.Reference+kept.Image.Repository == "" || s.container.Image != b.Image {
		return
	}
	p.notef("image %s: the current one", b.Image)
	key := image.RequireSignature
	*image, p.o.Image = kept.Image, b.Image
	image.RequireSignature = key
	if len(p.o.Plugins) == 0 {
		p.request.Spec.Source, p.o.Plugins, p.o.Packages = kept.Source, former.Plugins, former.Packages
	}
}

// keepConfiguration keeps the former configuration, with its extenders and permissions, unless the
// request has one. Extenders that `extender deploy` added stay in any case.
func (p *planner) keepConfiguration(former v1alpha1.CustomSchedulerSpec) {
	spec := &p.request.Spec
	extenders := former.Extenders
	if isConfigured(spec.Configuration) {
		extenders = slices.DeleteFunc(extenders,
			func(e v1alpha1.Extender) bool { return e.Deployed == nil || !e.Deployed.Added })
	} else {
		p.notef("configuration: the one of the current replacement")
		given := spec.Configuration
		spec.Configuration = former.Configuration
		spec.Configuration.Lossy = given.Lossy || former.Configuration.Lossy
		spec.Configuration.PolicyConfigMap = given.PolicyConfigMap ||
			former.Configuration.PolicyConfigMap && p.info.Release.Rules().Policy
		if spec.RBAC.Rules == nil {
			spec.RBAC.Rules = former.RBAC.Rules
		}
	}
	for _, e := range extenders {
		if !slices.ContainsFunc(spec.Extenders, func(given v1alpha1.Extender) bool { return given.Name == e.Name }) {
			spec.Extenders = append(spec.Extenders, e)
		}
	}
}

// findOriginalConfig finds the configuration that the original scheduler reads: the one in the
// manifest, unless pmk-sched wrote that.
func (p *planner) findOriginalConfig(s *scheduler, former *record) error {
	file, given := staticpod.Flag(s.args, "config")
	onNode := staticpod.OnHost(s.manifest.Pod, s.container, file)
	switch {
	case !given:
	case path.Dir(onNode) != s.layout.ConfigDir || !strings.HasPrefix(path.Base(onNode), configStem):
		p.originalConfig = file
	case former != nil:
		p.originalConfig = former.OriginalConfig
	case !isConfigured(p.request.Spec.Configuration):
		return problem.Invalidf("specify one with --config or --preset",
			"the replacement that wrote the current configuration %s does not record its request", onNode)
	}
	return nil
}

// record returns the plan's record.
func (p *planner) record() ([]byte, error) {
	text, err := json.MarshalIndent(record{Request: p.request, Release: p.release, Plugins: p.o.Plugins,
		Packages: p.o.Packages, OriginalConfig: p.originalConfig}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("record the request: %w", err)
	}
	return text, nil
}
