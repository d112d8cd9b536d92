package deploy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// WiringOf returns how a scheduler calls an extender that pmk-sched deployed.
func WiringOf(e v1alpha1.Extender) (manifest.Wiring, error) {
	w, at := manifest.Wiring{Extender: CallOf(e), ClientSecret: e.Deployed.ClientSecret}, e.Deployed
	if !e.Sidecar {
		tls := &profiles.ExtenderTLS{ServerName: at.ServerName, CAData: at.CAData}
		if at.ClientSecret != "" {
			tls.CertFile, tls.KeyFile = manifest.ClientDir(e.Name)+"/tls.crt", manifest.ClientDir(e.Name)+"/tls.key"
		}
		w.Extender.URLPrefix, w.Extender.EnableHTTPS, w.Extender.TLS = at.URLPrefix, true, tls
		return w, nil
	}
	policies, err := PoliciesOf(e)
	w.Extender.URLPrefix = manifest.SidecarURL(int32(at.Port))
	w.Sidecar = &manifest.Sidecar{
		Image: at.Image, PullPolicy: corev1.PullPolicy(e.PullPolicy), Policies: policies, Rules: at.Rules,
		Port: int32(at.Port),
	}
	return w, err
}

// PoliciesOf returns the policies that an extender serves.
func PoliciesOf(e v1alpha1.Extender) ([]manifest.Policy, error) {
	var list []manifest.Policy
	for _, p := range e.Policies {
		policy := manifest.Policy{Name: p.Name, Weight: p.Weight}
		if err := yaml.Unmarshal([]byte(p.Args), &policy.Args); err != nil {
			return nil, problem.Invalidf("", "extender %s: the arguments of policy %s must be a mapping", e.Name, p.Name)
		}
		list = append(list, policy)
	}
	return list, nil
}

// Wirings returns the wirings of the extenders in a request that pmk-sched deployed.
func Wirings(r *v1alpha1.CustomScheduler) (list []manifest.Wiring, err error) {
	for _, e := range deployedExtenders(r) {
		w, err := WiringOf(e)
		if err != nil {
			return nil, err
		}
		list = append(list, w)
	}
	return list, nil
}

// deployedExtenders returns the extenders in a request that pmk-sched deployed.
func deployedExtenders(r *v1alpha1.CustomScheduler) []v1alpha1.Extender {
	return slices.DeleteFunc(slices.Clone(r.Spec.Extenders), func(e v1alpha1.Extender) bool { return e.Deployed == nil })
}

// ExtendersOf returns the extenders that a deployed scheduler calls and that pmk-sched deployed.
func ExtendersOf(revision *apply.Revision) ([]v1alpha1.Extender, error) {
	r, err := decodeRecord(revision)
	if err != nil || r.Request == nil {
		return nil, err
	}
	return deployedExtenders(r.Request), nil
}

// describeWirings lists extenders in a description.
func describeWirings(wirings []manifest.Wiring) (text string) {
	separator := ", extenders "
	for _, w := range wirings {
		text, separator = text+separator+w.Extender.Name, ", "
	}
	return text
}

// placeSidecars gives each sidecar without a port one next to the scheduler's.
func (p *Plan) placeSidecars() error {
	p.Request.Spec.Extenders = slices.Clone(p.Request.Spec.Extenders)
	taken := map[v1alpha1.AutoInt]bool{}
	var open []*v1alpha1.DeployedExtender
	for i, e := range p.Request.Spec.Extenders {
		if !e.Sidecar || e.Deployed == nil {
			continue
		}
		placed := *e.Deployed
		if taken[placed.Port] = true; placed.Port == 0 {
			open = append(open, &placed)
		}
		p.Request.Spec.Extenders[i].Deployed = &placed
	}
	for _, sidecar := range open {
		for n := 0; sidecar.Port == 0; n++ {
			port, err := manifest.SidecarPort(p.Scheduler.Port, n)
			if err != nil {
				return err
			}
			if at := v1alpha1.AutoInt(port); !taken[at] {
				sidecar.Port, taken[at] = at, true
			}
		}
	}
	return nil
}

// fill sets what the request says about the scheduler without a decision.
func (p *Plan) fill() (err error) {
	spec, s := p.Request.Spec, &p.Scheduler
	s.Name, s.Namespace, s.Args, s.PriorityClass = p.Name, p.Namespace, spec.Args, spec.PriorityClassName
	s.PullPolicy = corev1.PullPolicy(spec.Image.PullPolicy)
	s.Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList(spec.Resources.Requests), Limits: corev1.ResourceList(spec.Resources.Limits),
	}
	if _, s.ExtenderClients, err = CalledExtenders(p.Request); err != nil {
		return err
	}
	s.Wirings, err = Wirings(p.Request)
	return err
}

// configure renders the scheduler's configuration from the request.
func (p *Plan) configure() error {
	request, _, err := Rendering(p.Request)
	if err != nil {
		return err
	}
	request.Release, request.Enable, request.InsecurePort = p.Release, p.plugins, p.insecurePort
	for _, w := range p.Scheduler.Wirings {
		request.Extenders = append(request.Extenders, w.Extender)
	}
	p.Scheduler.Configuration, err = request.Render()
	return err
}

// WithoutExtenders returns a request's extenders without the deployed extenders that are named in
// drop, or that set replaces. It is an error if set has the name of another extender.
func WithoutExtenders(r *v1alpha1.CustomScheduler, set []v1alpha1.Extender, drop ...string) ([]v1alpha1.Extender,
	error) {
	names := slices.Clone(drop)
	for _, e := range set {
		names = append(names, e.Name)
	}
	named := func(e v1alpha1.Extender) bool { return slices.Contains(names, e.Name) }
	kept := slices.DeleteFunc(slices.Clone(r.Spec.Extenders),
		func(e v1alpha1.Extender) bool { return e.Deployed != nil && named(e) })
	if i := slices.IndexFunc(kept, named); i >= 0 {
		return nil, problem.Invalidf("choose another --name", "scheduler %s calls another extender %s, at %s", r.Name,
			kept[i].Name, kept[i].URLPrefix)
	}
	return kept, nil
}

// SetExtenders plans a revision's scheduler again with other extenders in its request: it adds the
// extenders in set, which replace deployed extenders with the same name, and removes the deployed
// extenders named in drop.
func (p *Plan) SetExtenders(set []v1alpha1.Extender, drop ...string) error {
	if p.Request == nil {
		return problem.Invalidf("", "%s is an extender, which calls none", p.Name)
	}
	kept, err := WithoutExtenders(p.Request, set, drop...)
	if err != nil {
		return err
	}
	if err := p.planAgain(kept); err != nil {
		return err
	}
	recorded, known := p.Objects, p.Scheduler.Configuration.Notes // without the extenders that the user names
	if err := p.planAgain(slices.Concat(kept, set)); err != nil {
		return err
	}
	p.recorded, p.checked = recorded, false
	if len(set) == 0 {
		return nil
	}
	for _, n := range p.Scheduler.Configuration.Notes {
		if n.IsWarning() && !slices.Contains(known, n) {
			p.Warnings = append(p.Warnings, n.Message)
		}
	}
	unbatched, err := profiles.FindUnbatched(p.Scheduler.Configuration.YAML, p.Release, p.plugins, p.Gates())
	for _, u := range unbatched {
		p.Notes = append(p.Notes, u.String())
	}
	return err
}

// planAgain plans a revision's scheduler with these extenders in its request.
func (p *Plan) planAgain(extenders []v1alpha1.Extender) error {
	p.Request.Spec.Extenders = extenders
	for _, step := range []func() error{p.placeSidecars, p.fill, p.configure, p.Render} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
