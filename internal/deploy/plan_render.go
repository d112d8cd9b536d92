package deploy

import (
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
)

func (p *planner) renderConfiguration() error {
	request := profiles.Request{
		Release: p.plan.Release, SchedulerName: p.o.Name, LeaseNamespace: p.o.Namespace,
		Kubeconfig: manifest.KubeconfigPath(p.o.Name), LeaderElect: true,
		Preset: p.o.Preset, Source: p.o.Configuration, SourceName: p.o.ConfigurationName, Lossy: p.o.Lossy,
		Enable: p.o.Plugins, Extenders: p.o.Extenders,
	}
	if p.info != nil {
		request.InsecurePort = p.info.Scheduler.InsecurePort
	}
	render := profiles.Render
	if p.o.PolicyConfigMap {
		render = profiles.RenderPolicy
	}
	rendered, err := render(request)
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

// choosePluginRules collects the permissions of the plugins.
func (p *planner) choosePluginRules() error {
	rules, notes, err := manifest.PluginRules(p.plan.Scheduler.Configuration, p.o.Rules, p.o.PluginRules)
	p.plan.Scheduler.PluginRules, p.plan.Notes = rules, append(p.plan.Notes, notes...)
	return err
}
