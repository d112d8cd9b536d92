package deploy

import (
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/internal/deploy/preflight"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Plan is Deploy's input: every decision is made and every object rendered. It is data: making it
// changes nothing.
type Plan struct {
	Name, Namespace string
	Release         versions.Release
	// Scheduler is the input from which Objects are rendered, unless Extender is set.
	Scheduler manifest.Scheduler
	// Objects are in the order in which they are applied.
	Objects []*unstructured.Unstructured
	// Notes and Warnings are for the user: choices with their reasons, and changes to the
	// configuration.
	Notes, Warnings []string
	// TakenPorts are the ports in use on the control-plane nodes, with their users.
	TakenPorts map[int]string
	// Endpoints are the API servers that the replicas use, as far as this machine can check them.
	Endpoints []preflight.Endpoint
	// Extender is set for an extender, whose objects were rendered from it. Scheduler then has only
	// the image.
	Extender *manifest.Extender
	// Request is the request that the plan was made for. It is nil for an extender.
	Request *v1alpha1.CustomScheduler
	// Signature is the image's required signature, or nil.
	Signature *Signature
	// MissingImage is the reason why no node can get the image, or nil.
	MissingImage error
	// Before are the plans for extenders that are deployed before the scheduler.
	Before []*Plan
	// Origin is recorded in the revision: "rollback to revision 2", "upgrade from v1.24.3".
	Origin string
	// Replaces is the number of the revision that must be the current one when the plan is deployed,
	// or [NoRevision]. If it is 0, the current revision is not compared.
	Replaces int

	// plugins are compiled into the image, and insecurePort is free: Scheduler's configuration is
	// rendered with them.
	plugins      []profiles.Plugin
	insecurePort int
	// checked is set if the configuration was checked by an earlier deployment.
	checked bool
	// rerecord is set if a revision is saved also if its objects are those of the current one.
	rerecord bool
	// recorded are the plan's objects that are from the cluster, rules the rules in a request from
	// there, held the permissions before the run that the plan undoes, and allowed permissions that
	// were checked; see confirmGained.
	recorded      []*unstructured.Unstructured
	rules         []rbacv1.PolicyRule
	held, allowed []grant
	// from holds the facts from [NewPlan] without the node's credentials, to plan again.
	from Facts
}

// NoRevision as [Plan.Replaces] requires that no revision is deployed.
const NoRevision = -1

// planner collects NewPlan's decisions.
type planner struct {
	Facts
	request *v1alpha1.CustomScheduler
	plan    *Plan
}

// defaultControlPlaneLabel is the control-plane nodes' label without a cluster: kubeadm's since
// 1.20 (cmd/kubeadm/app/constants).
const defaultControlPlaneLabel = "node-role.kubernetes.io/control-plane"

// NewPlan decides everything that the request leaves open, and renders the objects. It does no I/O:
// the request contains the contents of the files that it names. The plan records it, with the ports
// of sidecars.
func NewPlan(request *v1alpha1.CustomScheduler, facts Facts) (*Plan, error) {
	recorded := *request
	p := &planner{Facts: facts, request: &recorded, plan: &Plan{Name: request.Name, Namespace: NamespaceOf(request),
		Origin: facts.Origin, Replaces: facts.Replaces, Request: &recorded, Signature: facts.Signature,
		MissingImage: facts.MissingImage, TakenPorts: map[int]string{}, plugins: facts.Plugins}}
	if facts.Cluster != nil {
		p.plan.insecurePort = facts.Cluster.Scheduler.InsecurePort
	}
	if err := Validate(request, facts); err != nil {
		return nil, err
	}
	if facts.Image == "" {
		return nil, problem.Invalidf("build an image with `pmk-sched build`", "scheduler %s: --image is required",
			request.Name)
	}
	decisions := []func() error{p.chooseRelease, p.chooseCredentials, p.chooseUser, p.chooseNodes, p.choosePort,
		p.chooseReplicas, p.placeExtenders, p.renderConfiguration, p.noteGangs, p.choosePluginRules,
		p.chooseReader, p.chooseRoute, p.plan.Render}
	for _, decide := range decisions {
		if err := decide(); err != nil {
			return nil, err
		}
	}
	facts.Node = nil
	p.plan.from = facts
	return p.plan, nil
}

func (p *planner) note(format string, args ...any) {
	p.plan.Notes = append(p.plan.Notes, fmt.Sprintf(format, args...))
}

func (p *planner) warn(format string, args ...any) {
	p.plan.Warnings = append(p.plan.Warnings, fmt.Sprintf(format, args...))
}

// chooseRelease chooses the requested release, else the API server's.
func (p *planner) chooseRelease() error {
	release, err := p.Release()
	if err != nil {
		return err
	}
	p.plan.Release = release
	switch {
	case !IsChosen(p.Branch):
		p.note("release %s: the API server reports %s", release, p.Cluster.Server.Version)
	case p.Cluster != nil:
		warnings, err := versions.CheckSkew(release, p.Cluster.Release)
		if err != nil {
			return err
		}
		p.plan.Warnings = append(p.plan.Warnings, warnings...)
	}
	rules, err := versions.Select(p.plan.Release)
	if err != nil {
		return err
	}
	p.warnOfMissingSources()
	p.note("config API %s: the one for %s", rules.Render, p.plan.Release)
	p.plan.Scheduler = manifest.Scheduler{
		Release: p.plan.Release, Image: strings.ReplaceAll(p.Image, image.ReleaseInTag, p.plan.Release.String()),
		Version: p.Version, Architectures: p.Architectures,
	}
	given := profiles.CommandLine{Release: p.plan.Release, Given: p.request.Spec.Args}
	p.plan.Warnings = append(p.plan.Warnings, given.Warnings()...)
	p.noteSignature()
	return nil
}

// noteSignature records the key that must have signed the image.
func (p *planner) noteSignature() {
	s := p.Signature
	if s == nil {
		return
	}
	p.plan.Scheduler.SignedBy = s.Key
	if s.Err == nil {
		p.note("image signature: verified with the required key %s", s.Key)
		return
	}
	p.warn("the signature of the required key %s is not verified: %v", s.Key, s.Err)
}

// warnOfMissingSources warns about plugins that are too large to record: only a file that names
// their directory upgrades the scheduler.
func (p *planner) warnOfMissingSources() {
	for _, plugin := range p.request.Spec.Source.Plugins {
		if plugin.Path != "" && plugin.Content == nil {
			p.warn("the sources of plugin %s are too large to record: upgrade the scheduler with -f and its file on a machine "+
				"with this directory", plugin.Path)
		}
	}
}

// chooseCredentials chooses the node's credentials on a control-plane node, and a ServiceAccount
// elsewhere.
func (p *planner) chooseCredentials() error {
	mode := p.credentials(p.request)
	auto := mode == ""
	if auto {
		mode = CredentialsServiceAccount
		switch {
		case p.hosted():
			p.note("credentials serviceaccount: the control plane (%s) has no nodes in the cluster", p.Cluster.Hosted.Kind)
		case p.Node != nil:
			mode = CredentialsNode
			p.note("credentials node: this node has %s", p.Node.Path)
		default:
			p.note("credentials serviceaccount: this machine has no scheduler kubeconfig of a control-plane node")
		}
	}
	if mode == CredentialsServiceAccount {
		p.plan.Scheduler.Credentials = manifest.Credentials{Mode: mode, Server: p.APIServer}
		return nil
	}
	if p.hosted() {
		return problem.Invalidf("use --credentials serviceaccount, the default on this cluster",
			"credentials %s: the control plane (%s) has no nodes in the cluster, so that no node has the scheduler's kubeconfig",
			mode, p.Cluster.Hosted.Kind)
	}
	if p.Node == nil {
		return problem.Invalidf(
			"run pmk-sched on a control-plane node, give its root directory with --node-root, or use --credentials "+
				"serviceaccount",
			"credentials %s need the scheduler kubeconfig of a control-plane node, and none was found here", mode)
	}
	if !p.Node.Expires.IsZero() && !p.Now.IsZero() && p.Now.After(p.Node.Expires) {
		return problem.Errorf("renew the node's certificates, or use --credentials serviceaccount",
			"the certificate in %s expired on %s", p.Node.Path, p.Node.Expires.UTC().Format("2006-01-02 15:04 MST"))
	}
	p.plan.Scheduler.Credentials = manifest.Credentials{
		Mode: mode, User: p.Node.User, Server: p.Node.Server, ServerName: p.Node.ServerName,
		CA: p.Node.CA, Cert: p.Node.Cert, Key: p.Node.Key, HostPath: p.Node.Path,
	}
	if mode == CredentialsNodeInline {
		p.warn("the private key of %s is stored in a ConfigMap: everyone who can read ConfigMaps in %s can impersonate it",
			p.Node.User, p.plan.Namespace)
	}
	return p.chooseServer(auto)
}

// chooseUser leaves the pods' user to OpenShift in the namespaces where it assigns users.
func (p *planner) chooseUser() error {
	if p.Cluster != nil && p.Cluster.AssignsUser(p.plan.Namespace) {
		p.plan.Scheduler.AssignedUser = true
		p.note("user: OpenShift assigns one in namespace %s, and refuses a fixed one", p.plan.Namespace)
	}
	return nil
}

// choosePort chooses the user's port unless it is in use, else the first free one.
func (p *planner) choosePort() error {
	free := inspect.FirstPort
	if p.Cluster != nil {
		for _, taken := range p.Cluster.Scheduler.Taken {
			p.plan.TakenPorts[taken.Port] = taken.By
		}
		free = p.Cluster.Scheduler.Port
	}
	wanted := int(p.request.Spec.Ports.Secure)
	switch {
	case wanted != 0:
		if by, taken := p.plan.TakenPorts[wanted]; taken && wanted != free {
			return problem.Invalidf(fmt.Sprintf("port %d is free, and chosen automatically without --port", free),
				"port %d is in use by %s", wanted, by)
		}
	case free == 0:
		return problem.Errorf("specify one with --port", "no port from %d on is free on the control-plane nodes",
			inspect.FirstPort)
	default:
		wanted = free
		if p.Cluster == nil {
			p.note("port %d: free ports are unknown without a cluster; --port selects another", wanted)
			break
		}
		p.note("port %d: the first free one from %d", wanted, inspect.FirstPort)
	}
	p.plan.Scheduler.Port = wanted
	return nil
}

// hosted reports whether the control plane is outside the cluster.
func (p *planner) hosted() bool { return p.Cluster != nil && p.Cluster.Hosted != nil }
