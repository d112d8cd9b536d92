package deploy

import (
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// Rendering returns the request for the configuration of the scheduler, without its release: a plan
// and a simulation render the same.
func (o Options) Rendering() profiles.Request {
	return profiles.Request{
		SchedulerName: o.Name, LeaseNamespace: o.Namespace, Kubeconfig: manifest.KubeconfigPath(o.Name), LeaderElect: true,
		Preset: o.Preset, Source: o.Configuration, SourceName: o.ConfigurationName, Lossy: o.Lossy, Enable: o.Plugins,
		Extenders: o.Extenders, Policy: o.PolicyConfigMap,
	}
}

func (p *planner) renderConfiguration() error {
	request := p.o.Rendering()
	request.Release = p.plan.Release
	if p.info != nil {
		request.InsecurePort = p.info.Scheduler.InsecurePort
	}
	rendered, err := request.Render()
	if err != nil {
		return err
	}
	notes, warnings := profiles.SplitNotes(rendered.Notes, p.o.ConfigurationName)
	p.plan.Notes, p.plan.Warnings = append(p.plan.Notes, notes...), append(p.plan.Warnings, warnings...)
	p.plan.base, p.plan.Scheduler.Configuration, p.plan.Scheduler.ExtenderClients = rendered, rendered, p.o.ExtenderClients
	return nil
}

// noteBatching notes the profiles whose pods are not batched, and why.
func (p *planner) noteBatching() error {
	unbatched, err := profiles.FindUnbatched(p.plan.Scheduler.Configuration.YAML, p.plan.Release, p.o.Plugins,
		p.plan.Gates())
	for _, u := range unbatched {
		p.note("%s", u)
	}
	return err
}

// chooseReader leaves out the RoleBinding in kube-system if the user or the cluster does not want
// it.
func (p *planner) chooseReader() error {
	const effect = "/metrics of the scheduler accepts tokens, and no client certificates"
	wanted, closed := p.o.AuthenticationReader, p.o.SystemClosed
	switch {
	case wanted != nil && !*wanted:
		p.note("no RoleBinding in kube-system (spec.rbac.authenticationReader): %s", effect)
	case wanted == nil && closed != "":
		p.warn("no RoleBinding in kube-system, where the cluster refuses it: %s: %s", effect, closed)
	default:
		return nil
	}
	p.plan.Scheduler.NoAuthenticationReader = true
	return nil
}

// choosePluginRules collects the permissions of the plugins.
func (p *planner) choosePluginRules() error {
	rules, notes, err := manifest.PluginRules(p.plan.Scheduler.Configuration, p.o.Rules, p.o.PluginRules)
	p.plan.Scheduler.PluginRules, p.plan.Notes = rules, append(p.plan.Notes, notes...)
	if p.o.Recorded {
		p.plan.rules = p.o.PluginRules
	}
	return err
}
