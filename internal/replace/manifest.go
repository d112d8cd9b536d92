package replace

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/internal/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/manifest"
	"github.com/pmk-sched/pmk-sched/internal/staticpod"
	"github.com/pmk-sched/pmk-sched/rbac"
	"github.com/pmk-sched/pmk-sched/versions"
)

// change makes the new manifest.
func (p *planner) change(context.Context) error {
	if err := p.namePolicy(); err != nil {
		return err
	}
	c := staticpod.Change{
		Container: schedulerContainer, Program: schedulerContainer, RunAsRoot: p.o.Image != "",
		Annotations: []staticpod.Annotation{{Name: staticpod.AnnotationReplacement, Value: p.r.id}, {Name: staticpod.AnnotationConfig, Value: p.r.hash}, {Name: staticpod.AnnotationBinary, Value: p.r.binary}},
	}
	if p.o.Image != "" {
		c.Image, c.PullIfNotPresent = p.r.Image, pullsAlways(p.container, p.r.Image)
	}
	// The folder is mounted, not the file: a volume of a pod whose UID stays is not
	// mounted anew when its path changes.
	if c.Config = staticpod.InContainer(p.manifest.Pod, p.container, p.r.ConfigFile); c.Config == "" {
		c.Config = p.r.ConfigFile
		c.Mount = &staticpod.Mount{Name: configVolume, HostPath: p.r.ConfigDir, Path: p.r.ConfigDir, Type: corev1.HostPathDirectory}
	}
	text, err := p.withUID(c)
	if err != nil {
		return err
	}
	fresh := *p.r.Old
	fresh.Data = text
	p.r.New = &fresh
	if p.r.Layout.Name == "pmk" && p.o.Image == "" {
		p.r.Env, err = readEnv(p.Files, c.Config)
		if err == nil && p.r.Env != nil {
			p.note("%s: SCHEDULER_FLAGS names the configuration, so that it lasts when the node agent writes the manifest anew", envFile)
		}
	}
	return err
}

// withUID makes the change with a UID under which the scheduler is restarted, and
// nothing else if possible. A manifest that changes is another pod to the kubelet,
// which stops every container of the old one before it starts the new: on PMK the API
// server too, for a minute. With the UID that the old one has it is an update, and only
// containers that changed are restarted. Where the kubelet would see no change in the
// scheduler's, it gets another UID.
func (p *planner) withUID(c staticpod.Change) ([]byte, error) {
	c.UID, p.r.pinned = types.UID(p.r.before.Hash), true
	text, err := p.manifest.Apply(c)
	if err != nil || bytes.Equal(text, p.r.Old.Data) {
		return text, err
	}
	next, err := staticpod.Parse(p.r.Layout.Manifest, text)
	if err != nil {
		return nil, err
	}
	after, err := next.Container(schedulerContainer)
	if err != nil || staticpod.Restarts(p.kubeletMinor(), p.container, after) {
		return text, err
	}
	if p.r.holdsAPI {
		p.warnOf("the kubelet sees no difference in the scheduler's container, so that the whole pod is restarted, the API server too: an image with another tag avoids that")
	}
	c.UID, p.r.pinned = types.UID(staticpod.Hash([]byte(p.r.id))[:2*hashLength]), false
	return p.manifest.Apply(c)
}

// kubeletMinor is of this node's kubelet.
func (p *planner) kubeletMinor() int {
	for _, node := range p.info.ControlPlane.Nodes {
		if release, err := versions.FromServer(node.KubeletVersion); err == nil && node.Name == p.r.Node {
			return release.Minor
		}
	}
	return p.info.Release.Minor
}

// pullsAlways says that the kubelet would ask a registry for an image that is there.
func pullsAlways(container *corev1.Container, image string) bool {
	latest := !strings.Contains(image[strings.LastIndex(image, "/")+1:], ":") || strings.HasSuffix(image, ":latest")
	return container.ImagePullPolicy == corev1.PullAlways || container.ImagePullPolicy == "" && latest
}

// rules makes the objects that plugins and a Policy need.
func (p *planner) rules(context.Context) error {
	if err := p.policyObjects(); err != nil {
		return err
	}
	needed, notes, err := manifest.PluginRules(p.rendered, p.o.Rules, p.o.PluginRules)
	p.r.Notes = append(p.r.Notes, notes...)
	if err != nil || len(needed) == 0 {
		return err
	}
	o := pluginRules(cmp.Or(p.info.Credentials.User, schedulerUser), needed)
	for _, object := range []runtime.Object{rbac.PluginRole(o), rbac.PluginRoleBinding(o)} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return fmt.Errorf("write the role of the plugins: %w", err)
		}
		p.r.Rules = append(p.r.Rules, &unstructured.Unstructured{Object: content})
	}
	p.note("ClusterRole %s-plugins, bound to %s: what the plugins need", corev1.DefaultSchedulerName, schedulerUser)
	return nil
}

func pluginRules(user string, rules []rbacv1.PolicyRule) rbac.Options {
	return rbac.Options{
		Name: corev1.DefaultSchedulerName, Namespace: metav1.NamespaceSystem, Subject: rbac.User(user),
		Labels: kubeapi.OwnerLabels(corev1.DefaultSchedulerName), PluginRules: rules,
	}
}

// room checks that everything can be written.
func (p *planner) room(context.Context) error {
	const enough = 1 << 20
	for _, dir := range []string{staticpod.StateDir, path.Dir(p.r.Layout.Manifest), path.Dir(path.Dir(p.r.Layout.Manifest)), p.r.ConfigDir} {
		if err := p.Files.CheckSpace(dir, enough); err != nil {
			return err
		}
	}
	return nil
}
