package replace

import (
	"bytes"
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/rbac"
	"github.com/pmk-sched/pmk-sched/versions"
)

// configVolume is the volume with the configurations; PMK's pod has one already.
const configVolume = "pmk-sched-config"

const gatesFlag = "feature-gates"

// fitGates sets the manifest and the flags without the feature gates that the release does not have
// or that it locks to their value, with a note for each. A gate that the release locks to the other
// value is an error.
func (p *planner) fitGates(s *scheduler) error {
	value, given := staticpod.Flag(s.args, gatesFlag)
	if !given {
		return nil
	}
	fitting, notes, err := versions.FitGates(value, p.info.Release)
	if err != nil {
		return fmt.Errorf("%s: %w", s.layout.Manifest, err)
	}
	if len(notes) == 0 {
		return nil
	}
	p.notes = append(p.notes, notes...)
	text, err := s.manifest.Apply(staticpod.Change{Container: schedulerContainer, Program: schedulerContainer,
		Flag: gatesFlag, Config: fitting})
	if err != nil {
		return err
	}
	if s.manifest, err = staticpod.Parse(s.layout.Manifest, text); err != nil {
		return err
	}
	container, err := s.manifest.Container(schedulerContainer)
	if err != nil {
		return err
	}
	s.args, err = staticpod.Words(container, schedulerContainer)
	return err
}

// manifestChange is the manifest with the new scheduler and the change to the node agent's
// settings.
type manifestChange struct {
	file   *staticpod.File
	pinned bool
	env    *EnvChange
}

// changeManifest makes the new manifest.
func (p *planner) changeManifest(s *scheduler, image string, c *configuration) (*manifestChange, error) {
	current, err := withPolicyFlag(s, c.rendered)
	if err != nil {
		return nil, err
	}
	change := staticpod.Change{
		Container: schedulerContainer, Program: schedulerContainer, RunAsRoot: p.o.Image != "",
		Annotations: []staticpod.Annotation{{Name: staticpod.AnnotationReplacement, Value: c.id},
			{Name: staticpod.AnnotationConfig, Value: c.hash}, {Name: staticpod.AnnotationBinary, Value: c.binary}},
	}
	if p.o.Image != "" {
		change.Image, change.PullIfNotPresent = image, pullsAlways(s.container, image)
	}
	// The directory is mounted, not the file: a volume in a pod whose UID stays is not mounted again
	// when its path changes.
	if change.Config = staticpod.InContainer(current.Pod, s.container, c.file); change.Config == "" {
		dir := s.layout.ConfigDir
		change.Config = c.file
		change.Mount = &staticpod.Mount{Name: configVolume, HostPath: dir, Path: dir, Type: corev1.HostPathDirectory}
	}
	text, pinned, err := p.withUID(s, current, change, c.id)
	if err != nil {
		return nil, err
	}
	m := &manifestChange{file: withData(s.file, text), pinned: pinned}
	if s.layout.EnvFile != "" && p.o.Image == "" {
		if m.env, err = readEnv(p.Files, s.layout.EnvFile, change.Config); err != nil {
			return nil, err
		}
		if m.env != nil {
			p.notef("%s: SCHEDULER_FLAGS names the configuration, so that it persists when the node agent rewrites the manifest",
				s.layout.EnvFile)
		}
	}
	return m, nil
}

// withUID makes the change with a UID with which the kubelet restarts the scheduler, and nothing
// else if possible. A manifest that changes is another pod to the kubelet, which stops every
// container in the old one before it starts the new: on PMK the API server too, for a minute. With
// the old pod's UID it is an update, and only containers that changed are restarted. If the kubelet
// would see no change in the scheduler's container, the pod gets another UID.
func (p *planner) withUID(s *scheduler, current *staticpod.Manifest, change staticpod.Change,
	id string) (text []byte, pinned bool, err error) {
	change.UID = types.UID(s.seen.Hash)
	text, err = current.Apply(change)
	if err != nil || bytes.Equal(text, s.file.Data) {
		return text, true, err
	}
	next, err := staticpod.Parse(s.layout.Manifest, text)
	if err != nil {
		return nil, false, err
	}
	after, err := next.Container(schedulerContainer)
	if err != nil || staticpod.Restarts(p.kubeletMinor(s.Node), s.container, after) {
		return text, true, err
	}
	if s.HoldsAPI {
		p.warnf(
			"the kubelet sees no change of the scheduler's container, so that it restarts the whole pod with the API server: " +
				"use an image with another tag to avoid that")
	}
	change.UID = types.UID(staticpod.Hash([]byte(id))[:2*hashLength])
	text, err = current.Apply(change)
	return text, false, err
}

// kubeletMinor returns a node's kubelet minor.
func (p *planner) kubeletMinor(name string) int {
	for _, node := range p.info.ControlPlane.Nodes {
		if release, err := versions.FromServer(node.KubeletVersion); err == nil && node.Name == name {
			return release.Minor
		}
	}
	return p.info.Release.Minor
}

// objects returns the API objects that plugins and a Policy need: RBAC objects and a ConfigMap.
func (p *planner) objects(rendered *profiles.Rendered) ([]*unstructured.Unstructured, error) {
	objects, err := p.policyObjects(rendered)
	if err != nil {
		return nil, err
	}
	rules, notes, err := manifest.PluginRules(rendered, pack.BundledRules(p.o.Packages), p.request.Spec.RBAC.Rules)
	p.notes = append(p.notes, notes...)
	if err != nil || len(rules) == 0 {
		return objects, err
	}
	o := p.permissions(rules)
	role, err := kubeapi.Unstructured(rbac.PluginRole(o), rbac.PluginRoleBinding(o))
	p.notef("ClusterRole %s-plugins, bound to %s: what the plugins need", corev1.DefaultSchedulerName, schedulerUser)
	return append(objects, role...), err
}

// permissions returns the role options for the default scheduler.
func (p *planner) permissions(rules []rbacv1.PolicyRule) rbac.Options {
	return rbac.Options{
		Name: corev1.DefaultSchedulerName, Namespace: metav1.NamespaceSystem,
		Subject: rbac.User(cmp.Or(p.info.Credentials.User, schedulerUser)),
		Labels:  ownership.Labels(corev1.DefaultSchedulerName), PluginRules: rules,
	}
}
