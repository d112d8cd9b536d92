package deploy

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// Plan is the input of Deploy: every decision is made and every object rendered. It is data: making
// it changes nothing.
type Plan struct {
	Name, Namespace string
	Release         versions.Release
	// Scheduler is the input from which Objects are rendered, unless Extender is set.
	Scheduler manifest.Scheduler
	// Objects are in the order in which they are applied.
	Objects []*unstructured.Unstructured
	// Notes and Warnings are for the user: choices with their reasons, and changes of the
	// configuration.
	Notes, Warnings []string
	// TakenPorts are the ports in use on the control-plane nodes, with their users.
	TakenPorts map[int]string
	// Endpoints are the API servers that the replicas use, as far as this machine can check them.
	Endpoints []preflight.Endpoint
	// Extender is set for an extender, whose objects were rendered from it. Scheduler then has only
	// the image.
	Extender *manifest.Extender
	// Request is the request that the plan was made for, or nil.
	Request *v1alpha1.CustomScheduler
	// Signature is the required signature of the image, or nil.
	Signature *Signature
	// MissingImage is the reason why no node can get the image, or nil.
	MissingImage error
	// Before are the plans of extenders that are deployed before the scheduler.
	Before []*Plan
	// Origin is recorded in the revision: "rollback to revision 2", "upgrade from v1.24.3".
	Origin string
	// Replaces is the number of the revision that must be the current one when the plan is deployed,
	// or [NoRevision]. If it is 0, the current revision is not compared.
	Replaces int

	// base is the configuration of Scheduler without its Wirings.
	base *profiles.Rendered
	// checked is set if the configuration was checked by an earlier deployment.
	checked bool
	// recorded are the objects of the plan that come out of the cluster, rules the rules of a request
	// that does, held the permissions before the run that the plan undoes, and allowed permissions
	// that were checked; see confirmGained.
	recorded      []*unstructured.Unstructured
	rules         []rbacv1.PolicyRule
	held, allowed []grant
	// from holds the inputs of [NewPlan], to plan with other options.
	from planner
}

// NoRevision as [Plan.Replaces] requires that no revision is deployed.
const NoRevision = -1

// planner collects the decisions of NewPlan.
type planner struct {
	info  *inspect.Info
	creds *inspect.NodeCredentials
	o     Options
	plan  *Plan
}

// defaultControlPlaneLabel is the label of control-plane nodes without a cluster: kubeadm's since
// 1.20 (cmd/kubeadm/app/constants).
const defaultControlPlaneLabel = "node-role.kubernetes.io/control-plane"

// NewPlan decides everything that o leaves open from the state of the cluster and the node, and
// renders the objects. It does no I/O. Without a cluster info is nil, and o.Branch is required.
// creds is nil if this is not a control-plane node.
func NewPlan(info *inspect.Info, creds *inspect.NodeCredentials, o Options) (*Plan, error) {
	o.Namespace = cmp.Or(o.Namespace, metav1.NamespaceSystem)
	p := &planner{info: info, creds: creds, o: o, plan: &Plan{Name: o.Name, Namespace: o.Namespace, Origin: o.Origin,
		Replaces: o.Replaces, Request: o.Request, Signature: o.Signature, MissingImage: o.MissingImage,
		TakenPorts: map[int]string{}}}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	decisions := []func() error{p.chooseRelease, p.chooseCredentials, p.chooseUser, p.chooseNodes, p.choosePort,
		p.chooseReplicas, p.placeExtenders, p.renderConfiguration, p.configureExtenders, p.noteBatching, p.noteGangs,
		p.choosePluginRules, p.chooseReader, p.plan.Render}
	for _, decide := range decisions {
		if err := decide(); err != nil {
			return nil, err
		}
	}
	p.o.Extenders = o.Extenders // a plan from these options adds Wirings again
	p.plan.from = planner{info: info, o: p.o}
	return p.plan, nil
}

func (p *planner) note(format string, args ...any) {
	p.plan.Notes = append(p.plan.Notes, fmt.Sprintf(format, args...))
}

func (p *planner) warn(format string, args ...any) {
	p.plan.Warnings = append(p.plan.Warnings, fmt.Sprintf(format, args...))
}

// Release returns the release of a plan for o: o.Branch, else the release of the API server. info
// may be nil.
func Release(info *inspect.Info, o Options) (versions.Release, error) {
	switch {
	case o.Branch != "" && o.Branch != Auto:
		return versions.Parse(o.Branch)
	case info != nil:
		return info.Release, nil
	}
	return versions.Release{},
		problem.Invalidf("specify a release, for example --branch v1.24.3", "--branch is required without a cluster")
}

// chooseRelease chooses o.Branch, else the release of the API server.
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
		return problem.Invalidf("specify a release, for example --branch v1.24.3", "--branch is required without a cluster")
	}
	rules, err := versions.Select(p.plan.Release)
	if err != nil {
		return err
	}
	p.warnOfMissingSources()
	p.note("config API %s: the one for %s", rules.Render, p.plan.Release)
	p.plan.Scheduler = manifest.Scheduler{
		Name: p.o.Name, Namespace: p.o.Namespace, Release: p.plan.Release,
		Image:      strings.ReplaceAll(p.o.Image, image.ReleaseInTag, p.plan.Release.String()),
		PullPolicy: corev1.PullPolicy(p.o.PullPolicy), Resources: p.o.Resources, Version: p.o.Version,
		Architectures: p.o.Architectures, Args: p.o.Args, PriorityClass: p.o.PriorityClass,
	}
	given := profiles.CommandLine{Release: p.plan.Release, Given: p.o.Args}
	p.plan.Warnings = append(p.plan.Warnings, given.Warnings()...)
	p.noteSignature()
	return nil
}

// noteSignature records the key that must have signed the image.
func (p *planner) noteSignature() {
	s := p.o.Signature
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

// warnOfMissingSources warns of plugins that are too large to record: only a file that names their
// directory upgrades the scheduler.
func (p *planner) warnOfMissingSources() {
	if p.o.Request == nil {
		return
	}
	for _, plugin := range p.o.Request.Spec.Source.Plugins {
		if plugin.Path != "" && plugin.Content == nil {
			p.warn("the sources of plugin %s are too large to record: upgrade the scheduler with -f and its file on a machine "+
				"with this directory", plugin.Path)
		}
	}
}

// chooseCredentials chooses the node's credentials on a control-plane node, and a ServiceAccount
// elsewhere.
func (p *planner) chooseCredentials() error {
	mode := p.o.Credentials
	auto := mode == "" || mode == Auto
	if auto {
		mode = CredentialsServiceAccount
		switch {
		case p.hosted():
			p.note("credentials serviceaccount: the control plane (%s) has no nodes in the cluster", p.info.Hosted.Kind)
		case p.creds != nil:
			mode = CredentialsNode
			p.note("credentials node: this node has %s", p.creds.Path)
		default:
			p.note("credentials serviceaccount: this machine has no scheduler kubeconfig of a control-plane node")
		}
	}
	if mode == CredentialsServiceAccount {
		p.plan.Scheduler.Credentials = manifest.Credentials{Mode: mode, Server: p.o.APIServer}
		return nil
	}
	if p.hosted() {
		return problem.Invalidf("use --credentials serviceaccount, the default on this cluster",
			"credentials %s: the control plane (%s) has no nodes in the cluster, so that no node has the scheduler's kubeconfig",
			mode, p.info.Hosted.Kind)
	}
	if p.creds == nil {
		return problem.Invalidf(
			"run pmk-sched on a control-plane node, give its root directory with --node-root, or use --credentials "+
				"serviceaccount",
			"credentials %s need the scheduler kubeconfig of a control-plane node, and none was found here", mode)
	}
	if !p.creds.Expires.IsZero() && !p.o.Now.IsZero() && p.o.Now.After(p.creds.Expires) {
		return problem.Errorf("renew the node's certificates, or use --credentials serviceaccount",
			"the certificate in %s expired on %s", p.creds.Path, p.creds.Expires.UTC().Format("2006-01-02 15:04 MST"))
	}
	p.plan.Scheduler.Credentials = manifest.Credentials{
		Mode: mode, User: p.creds.User, Server: p.creds.Server, ServerName: p.creds.ServerName,
		CA: p.creds.CA, Cert: p.creds.Cert, Key: p.creds.Key, HostPath: p.creds.Path,
	}
	if mode == CredentialsNodeInline {
		p.warn("the private key of %s is stored in a ConfigMap: everyone who can read ConfigMaps in %s can impersonate it",
			p.creds.User, p.o.Namespace)
	}
	return p.chooseServer(auto)
}

// chooseUser leaves the user of the pods to OpenShift in the namespaces where it assigns users.
func (p *planner) chooseUser() error {
	if p.info != nil && p.info.AssignsUser(p.o.Namespace) {
		p.plan.Scheduler.AssignedUser = true
		p.note("user: OpenShift assigns one in namespace %s, and refuses a fixed one", p.o.Namespace)
	}
	return nil
}

// choosePort chooses the port of the user unless it is in use, else the first free one.
func (p *planner) choosePort() error {
	free := inspect.FirstPort
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
			return problem.Invalidf(fmt.Sprintf("port %d is free, and chosen automatically without --port", free),
				"port %d is in use by %s", wanted, by)
		}
	case free == 0:
		return problem.Errorf("specify one with --port", "no port from %d on is free on the control-plane nodes",
			inspect.FirstPort)
	default:
		wanted = free
		p.note("port %d: the first free one from %d", wanted, inspect.FirstPort)
	}
	p.plan.Scheduler.Port = wanted
	return nil
}

// hosted reports whether the control plane is outside of the cluster.
func (p *planner) hosted() bool { return p.info != nil && p.info.Hosted != nil }
