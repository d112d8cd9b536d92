package replace

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
	"github.com/pmk-sched/pmk-sched/versions"
)

const (
	// schedulerContainer is the name of the scheduler's container in every layout's static pod, and of
	// its program.
	schedulerContainer = "kube-scheduler"
	schedulerUser      = "system:kube-scheduler"
	schedulerLease     = "kube-scheduler"
	// hashLength is the length of hashes in names and annotations.
	hashLength = 16
)

// Plan is the change that Run makes on one node. It is data: making it changes nothing.
type Plan struct {
	Target
	Layout inspect.Layout
	// Image of the new scheduler.
	Image string
	// Record describes the replacement, to plan it again.
	Record []byte
	// ID identifies the replacement; the pod has it in an annotation.
	ID string
	// Configuration is the configuration that the new scheduler reads from ConfigFile on the node. The
	// file's name ends in ConfigHash.
	Configuration []byte
	ConfigFile    string
	ConfigHash    string
	ConfigMode    fs.FileMode
	// Old and New are the manifest before and after.
	Old, New *staticpod.File
	// Pinned reports whether New keeps the pod's current UID, so that only changed containers are
	// restarted.
	Pinned bool
	// Env is the change to the node agent's settings, or nil.
	Env *EnvChange
	// Objects are the plugins' permissions, and the Policy with the permission to read it.
	Objects []*unstructured.Unstructured
	// Copies are more files for the backup.
	Copies []string
	// Before is the pod before the replacement.
	Before *staticpod.Seen
	// Notes and Warnings are for the user.
	Notes, Warnings []string
}

// planner collects the input and the messages for one plan.
type planner struct {
	Deps
	info            *inspect.Info
	o               Options
	notes, warnings []string
	// request is the request in o, completed with the current replacement's.
	request *v1alpha1.CustomScheduler
	// originalConfig is the path in the container of the configuration that the original scheduler
	// reads, or empty.
	originalConfig string
	// release of the image's program.
	release versions.Release
}

func (p *planner) notef(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

func (p *planner) warnf(format string, args ...any) {
	p.warnings = append(p.warnings, fmt.Sprintf(format, args...))
}

// plan reads the node and decides. It changes nothing.
func (p *planner) plan(ctx context.Context) (*Plan, error) {
	if err := p.o.Validate(); err != nil {
		return nil, err
	}
	if _, err := versions.Select(p.info.Release); err != nil {
		return nil, err
	}
	s, err := p.inspect(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.complete(s); err != nil {
		return nil, err
	}
	if p.o.FitGates {
		if err := p.fitGates(s); err != nil {
			return nil, err
		}
	}
	image, err := p.image(ctx, s)
	if err != nil {
		return nil, err
	}
	c, err := p.configure(ctx, s, image)
	if err != nil {
		return nil, err
	}
	m, err := p.changeManifest(s, image, c)
	if err != nil {
		return nil, err
	}
	objects, err := p.objects(c.rendered)
	if err != nil {
		return nil, err
	}
	if err := p.checkDiskSpace(s.layout); err != nil {
		return nil, err
	}
	record, err := p.record()
	if err != nil {
		return nil, err
	}
	return &Plan{
		Target: s.Target, Layout: s.layout, Image: image, Record: record, ID: c.id,
		Configuration: c.text, ConfigFile: c.file, ConfigHash: c.hash, ConfigMode: configMode(s, m.file.Data),
		Old: s.file, New: m.file, Pinned: m.pinned, Env: m.env,
		Objects: objects, Copies: c.copies, Before: s.seen, Notes: p.notes, Warnings: p.warnings,
	}, nil
}

// FindLayout returns the layout of a cluster whose default scheduler is a static pod that pmk-sched
// can replace.
func FindLayout(info *inspect.Info) (inspect.Layout, error) {
	const deploy = "deploy a second scheduler with `pmk-sched deploy`"
	layout, known := inspect.LayoutNamed(info.Layout)
	switch {
	case info.Layout == inspect.LayoutManaged:
		return inspect.Layout{}, problem.Invalidf(deploy,
			"the control plane has no nodes in the cluster: the default scheduler is not a static pod that could be replaced")
	case !known && len(info.Scheduler.Pods) > 0:
		pod := info.Scheduler.Pods[0]
		return inspect.Layout{}, problem.Invalidf(deploy, "replace Pod/%s/%s: pmk-sched does not know where this kind of "+
			"cluster has the manifest and the kubeconfig of its default scheduler", pod.Namespace, pod.Name)
	case !known:
		return inspect.Layout{},
			problem.Invalidf("run pmk-sched as root on a control-plane node, or give its root directory with --node-root",
				"this is not a control-plane node of a known layout")
	case layout.Owner != "":
		return inspect.Layout{}, problem.Invalidf(layout.Setting+"; or "+deploy,
			"the default scheduler of %s cannot be replaced: it belongs to %s", layout.Name, layout.Owner)
	case layout.Runs == inspect.RunsAsStaticPod:
		return layout, nil
	}
	return inspect.Layout{}, problem.Invalidf(deploy+"; to run no other, "+layout.DisableScheduler,
		"the default scheduler of %s is not a static pod: there is no manifest to change", layout.Name)
}

// FindNode returns this control-plane node's name: node, if the cluster has it, else the node with
// an address among names, else the one with a name among them.
func FindNode(info *inspect.Info, node string, names []string) (string, error) {
	var all, named, addressed []string
	for _, n := range info.ControlPlane.Nodes {
		all = append(all, n.Name)
		if slices.Contains(names, n.Name) {
			named = append(named, n.Name)
		}
		if slices.Contains(names, n.Address) {
			addressed = append(addressed, n.Name)
		}
	}
	matching := slices.Concat(named, addressed) // other machines may have the same host name
	switch {
	case node != "" && !slices.Contains(all, node):
		return "", problem.Invalidf("control-plane nodes: "+strings.Join(all, ", "), "no control-plane node is named %q",
			node)
	case node != "":
		return node, nil
	case len(matching) > 0:
		return matching[len(matching)-1], nil
	case len(all) == 1:
		return all[0], nil
	}
	return "", problem.Invalidf("specify it with --node", "it is not clear which control-plane node this is (%s)",
		strings.Join(all, ", "))
}

// image returns the new scheduler's image, which the node's container runtime has from now on.
func (p *planner) image(ctx context.Context, s *scheduler) (string, error) {
	if p.o.Image == "" {
		p.notef("image %s: the current one", s.container.Image)
		return p.requireSignature(ctx, s.container.Image)
	}
	image, err := p.requireSignature(ctx, strings.ReplaceAll(p.o.Image, image.ReleaseInTag, p.info.Release.String()))
	if err != nil {
		return "", err
	}
	return image, p.EnsureImage(ctx, image)
}

// configMode returns the configuration file's mode, which a scheduler that does not run as root has
// to be able to read.
func configMode(s *scheduler, manifest []byte) fs.FileMode {
	mode := fs.FileMode(0o600)
	if s.layout.SingleFile {
		mode &= s.file.Mode
	}
	if mode == 0 || !runsAsRoot(s.layout.Manifest, manifest) {
		return 0o644
	}
	return mode
}

// runsAsRoot reports whether the scheduler's container runs as root.
func runsAsRoot(name string, manifest []byte) bool {
	m, err := staticpod.Parse(name, manifest)
	if err != nil {
		return false
	}
	container, err := m.Container(schedulerContainer)
	if err != nil {
		return false
	}
	var user *int64
	if s := m.Pod.Spec.SecurityContext; s != nil {
		user = s.RunAsUser
	}
	if s := container.SecurityContext; s != nil && s.RunAsUser != nil {
		user = s.RunAsUser
	}
	return user == nil || *user == 0
}

// checkDiskSpace checks that every file can be written.
func (p *planner) checkDiskSpace(layout inspect.Layout) error {
	const enough = 1 << 20
	for _, dir := range []string{staticpod.StateDir, path.Dir(layout.Manifest), path.Dir(path.Dir(layout.Manifest)),
		layout.ConfigDir} {
		if err := p.Files.CheckSpace(dir, enough); err != nil {
			return err
		}
	}
	return nil
}

// pullsAlways reports whether the kubelet would ask a registry for an image that the node has.
func pullsAlways(container *corev1.Container, image string) bool {
	latest := !strings.Contains(image[strings.LastIndex(image, "/")+1:], ":") || strings.HasSuffix(image, ":latest")
	return container.ImagePullPolicy == corev1.PullAlways || container.ImagePullPolicy == "" && latest
}
