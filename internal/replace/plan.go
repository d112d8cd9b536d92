package replace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/cluster"
	"github.com/pmk-sched/pmk-sched/internal/manifest"
	"github.com/pmk-sched/pmk-sched/internal/problem"
	"github.com/pmk-sched/pmk-sched/internal/staticpod"
	"github.com/pmk-sched/pmk-sched/profiles"
)

const (
	// schedulerContainer is the scheduler's container in the static pod of every
	// layout, and the name of its program.
	schedulerContainer = "kube-scheduler"
	schedulerUser      = "system:kube-scheduler"
	schedulerLease     = "kube-scheduler"
	// defaultInsecurePort is the default scheduler's plain HTTP port, 1.20–1.22.
	defaultInsecurePort = 10251
	// configDir, on the node and in the container alike, is where configurations are
	// written, and configVolume the volume with it. PMK's pod has a volume for its
	// configurations already.
	configVolume = "pmk-sched-config"
	configDir    = "/etc/kubernetes/pmk-sched"
	pmkConfigDir = "/etc/pf9/kube.d/configs"
	configStem   = "pmk-sched-"
	hashLength   = 16
)

// Options is what a person asks for. At least one of Image, Preset and
// Configuration is set.
type Options struct {
	// Image of the new scheduler; empty keeps the one that runs. In it
	// [ReleaseInImage] stands for the release.
	Image string
	// Preset or Configuration, as in [Options]. Neither: the configuration that
	// the scheduler has.
	Preset            string
	Configuration     []byte
	ConfigurationName string
	// Plugins are those compiled into the image, Rules and PluginRules what they need.
	Plugins     []profiles.Plugin
	Rules       map[string]manifest.RulesFunc
	PluginRules []rbacv1.PolicyRule
	// Extenders are added to the configuration, and what it has at the addresses DropExtenders is taken out first. For names what the
	// replacement is for where it is for nothing else: taking that out again then brings back the original.
	Extenders     []profiles.Extender
	DropExtenders []string
	For           string
	// PolicyConfigMap is that of [Options].
	PolicyConfigMap bool
	// Node is the name of this node; empty: found by Names.
	Node string
	// Names are host names and addresses of this machine.
	Names []string
	// Timeout bounds the wait for the new scheduler, 0: 3 minutes. Steady is how
	// long it has to run before it is trusted, 0: 25 s.
	Timeout, Steady time.Duration
}

// Validate checks all that can be checked without a cluster.
func (o Options) Validate() error {
	switch {
	case o.Image == "" && o.Preset == "" && len(o.Configuration) == 0 && len(o.Plugins) == 0 && len(o.Extenders)+len(o.DropExtenders) == 0 && !o.PolicyConfigMap:
		return problem.Invalidf("give --image, --config or --preset", "what is the default scheduler to be replaced with?")
	case strings.ContainsAny(o.Image, " \t\n"):
		return problem.Invalidf("", "image %q: a reference holds no spaces", o.Image)
	case o.Preset != "" && len(o.Configuration) > 0:
		return problem.Invalidf("", "give a configuration or a preset, not both")
	}
	return nil
}

// Plan is what Replace will do on this node: every decision made.
type Plan struct {
	Layout cluster.Layout
	Node   string
	// Pod is the mirror pod in kube-system.
	Pod   string
	Image string
	// Configuration is the text that the new scheduler reads, ConfigFile where it
	// is written on the node.
	Configuration         []byte
	ConfigDir, ConfigFile string
	// Old and New are the manifest before and after.
	Old, New *staticpod.File
	// Env is the node agent's file of settings with its change; nil: untouched.
	Env *envChange
	// Rules are the objects that let plugins do what they need, and a Policy be read.
	Rules []*unstructured.Unstructured
	// Notes and Warnings are for the person.
	Notes, Warnings []string

	id       string
	hash     string
	binary   string
	hosts    []string
	alone    bool
	elects   bool
	pinned   bool
	holdsAPI bool
	single   bool
	copies   []string
	words    []string
	before   *staticpod.Seen
}

// ID names what the manifest is changed to; the pod carries it.
func (r *Plan) ID() string { return r.id }

// notReplaceable are the layouts whose scheduler is no pod.
func notReplaceable(layout string) string {
	switch layout {
	case "k3s":
		return "put ours beside it with `pmk-sched deploy`; to have no other, start k3s with --disable-scheduler and deploy with --name default-scheduler's profile in a configuration of your own"
	case "k0s":
		return "put ours beside it with `pmk-sched deploy`; to have no other, start the controller with --disable-components=kube-scheduler"
	case "microk8s":
		return "put ours beside it with `pmk-sched deploy`; to have no other, take kube-scheduler out of the arguments of kubelite"
	default:
		return "put ours beside it with `pmk-sched deploy`"
	}
}

// FindLayout returns the layout of this node, if its scheduler is a static pod.
func FindLayout(name string) (cluster.Layout, error) {
	for _, layout := range cluster.Layouts() {
		if layout.Name == name && layout.Runs == cluster.RunsAsStaticPod {
			return layout, nil
		}
	}
	if name == cluster.LayoutUnknown || name == "" {
		return cluster.Layout{}, problem.Invalidf("run it as root on a control-plane node, or give its root with --node-root", "this is no control-plane node of a known layout")
	}
	return cluster.Layout{}, problem.Invalidf(notReplaceable(name), "the default scheduler of %s runs in no pod of its own: there is no manifest to change", name)
}

// planner makes a Replacement.
type planner struct {
	Deps
	info *cluster.Info
	o    Options
	r    *Plan

	manifest  *staticpod.Manifest
	container *corev1.Container
	source    []byte
	name      string
	rendered  *profiles.Rendered
}

func (p *planner) note(format string, args ...any) {
	p.r.Notes = append(p.r.Notes, fmt.Sprintf(format, args...))
}

func (p *planner) warnOf(format string, args ...any) {
	p.r.Warnings = append(p.r.Warnings, fmt.Sprintf(format, args...))
}

// plan reads the node and decides. Nothing is changed.
func (p *planner) plan(ctx context.Context) error {
	for _, decide := range []func(context.Context) error{p.layout, p.read, p.node, p.look, p.image, p.configure, p.change, p.rules, p.room} {
		if err := decide(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *planner) layout(context.Context) (err error) {
	if err := p.o.Validate(); err != nil {
		return err
	}
	p.r.Layout, err = FindLayout(p.info.Layout)
	p.r.single = p.r.Layout.Name == "pmk"
	if err == nil && p.r.Layout.Name == "rke2" {
		p.warnOf("rke2 writes this manifest anew at its next start: kube-scheduler-image and kube-scheduler-arg in its config.yaml last; `pmk-sched status` tells when that has happened")
	}
	if err == nil && p.r.single {
		p.warnOf("PMK's node agent writes %s anew when it starts: `pmk-sched status` tells when that has happened, and replacing again mends it", p.r.Layout.Manifest)
	}
	return err
}

// read reads the manifest.
func (p *planner) read(context.Context) error {
	file, err := p.Files.Read(p.r.Layout.Manifest)
	if errors.Is(err, fs.ErrNotExist) {
		return problem.WithHint(err, "the default scheduler of this node has no manifest where its layout keeps it")
	}
	if err != nil {
		return err
	}
	p.r.Old = file
	if p.manifest, err = staticpod.Parse(p.r.Layout.Manifest, file.Data); err != nil {
		return err
	}
	if p.container, err = p.manifest.Container(schedulerContainer); err != nil {
		return err
	}
	if p.r.words, err = staticpod.Words(p.container, schedulerContainer); err != nil {
		return problem.Invalidf("", "%s", err)
	}
	for _, c := range p.manifest.Pod.Spec.Containers {
		p.r.holdsAPI = p.r.holdsAPI || c.Name == "kube-apiserver"
	}
	elect, given := staticpod.Flag(p.r.words, "leader-elect")
	p.r.elects = !given || elect == "true"
	if lease, given := staticpod.Flag(p.r.words, "leader-elect-resource-name"); given && lease != schedulerLease {
		return problem.Invalidf("", "the scheduler elects its leader with the lease %s, which is not the default scheduler's", lease)
	}
	return nil
}

// node finds out which node this is, and so which pod.
func (p *planner) node(context.Context) error {
	if err := p.whichNode(); err != nil {
		return err
	}
	p.r.Pod = p.manifest.Pod.Name + "-" + strings.ToLower(p.r.Node)
	p.r.hosts = append([]string{p.r.Node}, p.o.Names...)
	return nil
}

func (p *planner) whichNode() error {
	var names []string
	for _, n := range p.info.ControlPlane.Nodes {
		names = append(names, n.Name)
		if p.o.Node == "" && (slices.Contains(p.o.Names, n.Name) || slices.Contains(p.o.Names, n.Address)) {
			p.r.Node = n.Name
		}
	}
	p.r.alone = len(names) == 1
	switch {
	case p.o.Node != "" && !slices.Contains(names, p.o.Node):
		return problem.Invalidf("control-plane nodes: "+strings.Join(names, ", "), "no control-plane node is named %q", p.o.Node)
	case p.o.Node != "":
		p.r.Node = p.o.Node
	case p.r.Node == "" && p.r.alone:
		p.r.Node = names[0]
	case p.r.Node == "":
		return problem.Invalidf("name it with --node", "which of the control-plane nodes is this? (%s)", strings.Join(names, ", "))
	}
	return nil
}

// look asks for the pod as it runs now: only a scheduler that works is replaced,
// unless a killed run left it as it is.
func (p *planner) look(ctx context.Context) error {
	seen, err := p.watch(p.r).Look(ctx)
	if err != nil {
		return err
	}
	p.r.before = seen
	if !seen.Ready {
		p.warnOf("Pod/%s/%s is not ready now", p.manifest.Pod.Namespace, p.r.Pod)
	}
	return nil
}

// image looks for the program in the image, and asks it for its release.
func (p *planner) image(ctx context.Context) error {
	p.r.Image = strings.ReplaceAll(p.o.Image, manifest.ReleaseInImage, p.info.Release.String())
	if p.r.Image == "" {
		p.r.Image = p.container.Image
		p.note("image %s: the one that runs", p.r.Image)
		return nil
	}
	return p.EnsureImage(ctx, p.r.Image)
}
