package deploy

import (
	"slices"

	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/versions"
)

// coscheduling is the name of the bundled plugin for pod groups, and of the plugin in
// sigs.k8s.io/scheduler-plugins.
const coscheduling = "Coscheduling"

// Gates returns the feature gates that the scheduler's flags set.
func (p *Plan) Gates() map[string]bool {
	return inspect.FeatureGates(slices.Concat(p.Scheduler.Configuration.Args, p.Scheduler.Args))
}

// noteGangs notes whether the release itself (from 1.35) or the plugin places pod groups, if there
// is a choice. It warns if the scheduler is to place them itself and the API server does not serve
// their API.
func (p *planner) noteGangs() error {
	rules, err := versions.Select(p.plan.Release)
	if err != nil || rules.Gangs.API == "" {
		return err
	}
	profiles, err := p.plan.Scheduler.Configuration.Arguments(coscheduling)
	if err != nil {
		return err
	}
	own, plugin := rules.Gangs.Enabled(p.plan.Gates()), len(profiles) > 0
	var known *inspect.Gangs // of the same API: another minor release has another one
	if p.Cluster != nil && p.Cluster.Gangs != nil && p.Cluster.Gangs.API == rules.Gangs.API {
		known = p.Cluster.Gangs
	}
	switch {
	case own && known != nil && !known.Served:
		p.warn(
			"the scheduler places pod groups of %s itself, but the API server does not serve them: it waits for them and "+
				"schedules nothing. kube-apiserver needs --feature-gates=GenericWorkload=true and --runtime-config=%s=true",
			rules.Gangs.API, rules.Gangs.API)
	case own && plugin:
		p.note(
			"pod groups of %s are placed by the scheduler itself, groups by label by plugin %s: a pod must be in one of them "+
				"only", rules.Gangs.API, coscheduling)
	case plugin && known != nil && known.Served:
		p.note("the API server serves pod groups of %s: a scheduler with %s places them itself, without plugin %s", known.API,
			known.GateFlag(), coscheduling)
	}
	return nil
}
