package deploy

import (
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// placeExtenders chooses the sidecars' ports.
func (p *planner) placeExtenders() error {
	if err := p.plan.placeSidecars(); err != nil {
		return err
	}
	if err := p.plan.fill(); err != nil {
		return err
	}
	for _, w := range p.plan.Scheduler.Wirings {
		where := "at " + w.Extender.URLPrefix
		if w.Sidecar != nil {
			where = "as a sidecar " + where
		}
		p.note("extender %s %s", w.Extender.Name, where)
	}
	return nil
}

func (p *planner) renderConfiguration() error {
	err := p.plan.configure()
	if err != nil && p.Copied != nil {
		err = p.Copied.explain(err)
	}
	if err != nil {
		return err
	}
	_, _, source := Configuration(p.request)
	described := *p.plan.Scheduler.Configuration
	if p.Copied != nil {
		source, described.Notes = p.Copied.Name, p.Copied.notes(described.Notes)
	}
	notes, warnings, err := DescribeConfiguration(&described, source, p.plan.Release, p.Plugins,
		p.plan.Gates())
	p.plan.Notes, p.plan.Warnings = append(p.plan.Notes, notes...), append(p.plan.Warnings, warnings...)
	return err
}

// DescribeConfiguration returns the notes and warnings about a configuration that was rendered from
// source, a file's name: its changes, and the profiles whose pods are not batched.
func DescribeConfiguration(c *profiles.Rendered, source string, release versions.Release, plugins []profiles.Plugin,
	gates map[string]bool) (notes, warnings []string, err error) {
	notes, warnings = profiles.SplitNotes(c.Notes, source)
	unbatched, err := profiles.FindUnbatched(c.YAML, release, plugins, gates)
	for _, u := range unbatched {
		notes = append(notes, u.String())
	}
	return notes, warnings, err
}

// chooseReader leaves out the RoleBinding in kube-system if the user or the cluster does not want
// it.
func (p *planner) chooseReader() error {
	const effect = "/metrics of the scheduler accepts tokens, and no client certificates"
	wanted, closed := p.request.Spec.RBAC.AuthenticationReader, p.SystemClosed
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

// choosePluginRules collects the plugins' permissions.
func (p *planner) choosePluginRules() error {
	rules, notes, err := manifest.PluginRules(p.plan.Scheduler.Configuration, p.Rules,
		p.request.Spec.RBAC.Rules)
	p.plan.Scheduler.PluginRules, p.plan.Notes = rules, append(p.plan.Notes, notes...)
	if p.Recorded {
		p.plan.rules = p.request.Spec.RBAC.Rules
	}
	return err
}
