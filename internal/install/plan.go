package install

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/cluster"
	"github.com/pmk-sched/pmk-sched/internal/manifest"
	"github.com/pmk-sched/pmk-sched/internal/problem"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Plan is what will be made: every decision taken and every object rendered.
// It is data; nothing was touched to make it.
type Plan struct {
	Name, Namespace string
	Release         versions.Release
	// Scheduler is what the objects were rendered from.
	Scheduler manifest.Scheduler
	// Objects are all objects in the order in which they are applied.
	Objects []*unstructured.Unstructured
	// Notes tell what was chosen and why, and what became of the lines of the
	// person's configuration.
	Notes []string
	// Warnings tell what may not be as wished.
	Warnings []string
	// TakenPorts are the ports in use on the control-plane nodes, and by whom.
	TakenPorts map[int]string
	// Extender is what the objects were rendered from where they are an extender's; then Scheduler holds no more than the image.
	Extender *manifest.Extender
	// Before are the plans of extenders that are deployed before the scheduler.
	Before []*Plan
	// Again describes the revision that the objects come from, where nothing else is known of it.
	Again string

	// from is what the plan was made of.
	from planner
}

// planner collects what NewPlan decides.
type planner struct {
	info  *cluster.Info
	creds *cluster.NodeCredentials
	o     Options
	plan  *Plan
}

// defaultControlPlaneLabel is the label of control-plane nodes where no cluster
// can be asked: kubeadm's since 1.20 (cmd/kubeadm/app/constants).
const defaultControlPlaneLabel = "node-role.kubernetes.io/control-plane"

// NewPlan decides everything that o leaves open, from what was found on the
// cluster and on the node, and renders the objects. It does no I/O. info may be
// nil when no cluster was asked: then o.Branch has to name the release. creds
// are nil away from a control-plane node. Wrong input gives an error with
// Invalid and Hint methods.
func NewPlan(info *cluster.Info, creds *cluster.NodeCredentials, o Options) (*Plan, error) {
	o.Namespace = cmp.Or(o.Namespace, metav1.NamespaceSystem)
	p := &planner{info: info, creds: creds, o: o, plan: &Plan{Name: o.Name, Namespace: o.Namespace, TakenPorts: map[int]string{}}}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	decisions := []func() error{p.chooseRelease, p.chooseCredentials, p.chooseNodes, p.choosePort, p.chooseReplicas, p.placeExtenders, p.renderConfiguration, p.configureExtenders, p.choosePluginRules, p.renderObjects, p.wireObjects}
	for _, decide := range decisions {
		if err := decide(); err != nil {
			return nil, err
		}
	}
	p.o.Extenders = o.Extenders // without those of Wirings, which a plan from these options adds again
	p.plan.from = planner{info: info, o: p.o}
	return p.plan, nil
}

func (p *planner) note(format string, args ...any) {
	p.plan.Notes = append(p.plan.Notes, fmt.Sprintf(format, args...))
}

func (p *planner) warn(format string, args ...any) {
	p.plan.Warnings = append(p.plan.Warnings, fmt.Sprintf(format, args...))
}

// Release is the release that a plan for o will be of: the one that was asked
// for, else the API server's. info may be nil.
func Release(info *cluster.Info, o Options) (versions.Release, error) {
	switch {
	case o.Branch != "" && o.Branch != Auto:
		return versions.Parse(o.Branch)
	case info != nil:
		return info.Release, nil
	}
	return versions.Release{}, problem.Invalidf("name it with --branch v1.24.3, say", "without a cluster the release is not known")
}

// chooseRelease takes the release that was asked for, else the API server's.
func (p *planner) chooseRelease() error {
	wanted := p.o.Branch
	switch {
	case wanted != "" && wanted != Auto:
		release, err := versions.Parse(wanted)
		if err != nil {
			return err
		}
		p.plan.Release = release
		if p.info != nil {
			warnings, err := versions.CheckSkew(release, p.info.Release)
			if err != nil {
				return err
			}
			p.plan.Warnings = append(p.plan.Warnings, warnings...)
		}
	case p.info != nil:
		p.plan.Release = p.info.Release
		p.note("release %s: the API server reports %s", p.plan.Release, p.info.Server.Version)
	default:
		return problem.Invalidf("name it with --branch v1.24.3, say", "without a cluster the release is not known")
	}
	rules, warnings, err := versions.Select(p.plan.Release)
	if err != nil {
		return err
	}
	p.plan.Warnings = append(p.plan.Warnings, warnings...)
	p.note("configuration API %s: what %s reads", rules.Render, p.plan.Release)
	p.plan.Scheduler = manifest.Scheduler{
		Name: p.o.Name, Namespace: p.o.Namespace, Release: p.plan.Release,
		Image: strings.ReplaceAll(p.o.Image, manifest.ReleaseInImage, p.plan.Release.String()), PullPolicy: corev1.PullPolicy(p.o.PullPolicy), Resources: p.o.Resources, Version: p.o.Version,
		Flags: p.o.Flags,
	}
	return nil
}

// chooseCredentials takes the node's credentials on a master, and a
// ServiceAccount elsewhere.
func (p *planner) chooseCredentials() error {
	mode := p.o.Credentials
	if mode == "" || mode == Auto {
		mode = CredentialsServiceAccount
		if p.creds != nil {
			mode = CredentialsNode
			p.note("credentials node: %s is here", p.creds.Path)
		} else {
			p.note("credentials serviceaccount: no scheduler kubeconfig of a control-plane node is here")
		}
	}
	if mode == CredentialsServiceAccount {
		p.plan.Scheduler.Credentials = manifest.Credentials{Mode: mode, Server: p.o.APIServer}
		return nil
	}
	if p.creds == nil {
		return problem.Invalidf("run on a control-plane node, name its root folder with --node-root, or use --credentials serviceaccount",
			"credentials %s need the scheduler kubeconfig of a control-plane node, and none was found here", mode)
	}
	if !p.creds.Expires.IsZero() && !p.o.Now.IsZero() && p.o.Now.After(p.creds.Expires) {
		return problem.Errorf("renew the node's certificates, or use --credentials serviceaccount",
			"use the certificate in %s: it expired on %s", p.creds.Path, p.creds.Expires.UTC().Format("2006-01-02 15:04 MST"))
	}
	p.plan.Scheduler.Credentials = manifest.Credentials{
		Mode: mode, User: p.creds.User, Server: p.creds.Server,
		CA: p.creds.CA, Cert: p.creds.Cert, Key: p.creds.Key, HostPath: p.creds.Path,
	}
	p.warnOfOneServer()
	if mode == CredentialsNodeInline {
		p.warn("the private key of %s goes into a ConfigMap: whoever may read ConfigMaps in %s can act as it", p.creds.User, p.o.Namespace)
	}
	return nil
}

// warnOfOneServer warns of copied credentials that name the API server of one
// control-plane node, as kubeadm's do, where there are several.
func (p *planner) warnOfOneServer() {
	server, err := url.Parse(p.creds.Server)
	if err != nil || p.info == nil || p.info.ControlPlane.Count < 2 || p.plan.Scheduler.Credentials.Mode == CredentialsHostPath {
		return
	}
	for _, node := range p.info.ControlPlane.Nodes {
		if node.Address != "" && node.Address == server.Hostname() {
			p.warn("every replica will ask the API server of node %s, which the kubeconfig here names (%s): with --credentials hostpath each asks its own node's", node.Name, p.creds.Server)
		}
	}
}

// chooseNodes takes the label that the control-plane nodes carry.
func (p *planner) chooseNodes() error {
	selected := len(p.o.NodeSelector) > 0
	switch {
	case selected:
		p.plan.Scheduler.NodeSelector = maps.Clone(p.o.NodeSelector)
	case p.o.AnyNode && p.plan.Scheduler.Credentials.Mode != CredentialsServiceAccount:
		return problem.Invalidf("add --credentials serviceaccount", "with --node-selector any the scheduler may run on nodes without its credentials")
	case p.o.AnyNode:
		p.note("runs on any node")
	case p.info == nil:
		p.plan.Scheduler.NodeSelector = map[string]string{defaultControlPlaneLabel: ""}
		p.warn("no cluster was asked: the label %s of the control-plane nodes is taken for granted", defaultControlPlaneLabel)
	case p.info.ControlPlane.LabelKey == "" && p.info.Nodes.Count == 0:
		return problem.Errorf("use a kubeconfig that may list nodes, or name the nodes with --node-selector KEY=VALUE",
			"look for the control-plane nodes: not one node could be listed; the warnings say why")
	case p.info.ControlPlane.LabelKey == "":
		return problem.Invalidf("on a managed cluster use --node-selector any, which lets the scheduler run on every node with --credentials serviceaccount; "+
			"otherwise select the nodes with --node-selector KEY=VALUE", "no control-plane node was found: no node carries a label of one")
	default:
		// No value: nodes of one cluster may carry the label with different ones.
		p.plan.Scheduler.NodeSelector = map[string]string{p.info.ControlPlane.LabelKey: ""}
		p.note("nodes with the label %s: what the control-plane nodes carry", p.info.ControlPlane.LabelKey)
	}
	if p.info != nil && !selected && !p.o.AnyNode {
		p.tolerate()
	}
	return nil
}

// tolerate adds the tolerations that the control-plane nodes of a distribution
// need beyond the usual.
func (p *planner) tolerate() {
	var keys []string
	for _, node := range p.info.ControlPlane.Nodes {
		for _, taint := range node.Taints {
			keys = append(keys, taint.Key)
		}
	}
	p.plan.Scheduler.Tolerations = manifest.Tolerations(keys)
}

// choosePort takes the port asked for unless it is taken, else the first free.
func (p *planner) choosePort() error {
	free := cluster.FirstPort
	if p.info != nil {
		for _, taken := range p.info.Scheduler.Taken {
			p.plan.TakenPorts[taken.Port] = taken.By
		}
		free = p.info.Scheduler.Port
	}
	wanted := p.o.Port
	switch {
	case wanted != 0:
		if by, taken := p.plan.TakenPorts[wanted]; taken && wanted != free {
			return problem.Invalidf(fmt.Sprintf("port %d is free; without --port it is chosen by itself", free), "port %d is taken by %s", wanted, by)
		}
	case free == 0:
		return problem.Errorf("name one with --port", "choose a port: none is free on the control-plane nodes")
	default:
		wanted = free
		p.note("port %d: the first that is free from %d", wanted, cluster.FirstPort)
	}
	p.plan.Scheduler.Port = wanted
	return nil
}

// chooseReplicas takes one for each control-plane node that is ready: on one
// that is not, a replica would wait forever. Leader election is always on, so
// that more than one is safe at any time.
func (p *planner) chooseReplicas() error {
	replicas := 1
	counted := p.info != nil && !p.o.AnyNode && len(p.o.NodeSelector) == 0
	switch {
	case p.o.Replicas > 0:
		replicas = p.o.Replicas
		if counted && replicas > p.info.ControlPlane.Count {
			p.warn("%d replicas for %d control-plane nodes: on the node's network each needs a node of its own", replicas, p.info.ControlPlane.Count)
		}
	case counted:
		var away []string
		for _, node := range p.info.ControlPlane.Nodes {
			if !node.Ready || node.Unschedulable {
				away = append(away, node.Name)
			}
		}
		replicas = max(1, p.info.ControlPlane.Count-len(away))
		p.note("replicas %d: one for each control-plane node", replicas)
		if len(away) > 0 {
			p.warn("no replica for control-plane nodes that are not ready or cordoned: %s; deploy again when they are back", strings.Join(away, ", "))
		}
	}
	if image := p.plan.Scheduler.Image; replicas > 1 && strings.HasPrefix(image, "localhost/") {
		p.warn("image %s is in no registry: it has to be loaded on each of the %d nodes", image, replicas)
	}
	p.plan.Scheduler.Replicas = int32(replicas)
	return nil
}
