package deploy

import (
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Installed is what a revision records of the scheduler that it deployed, to deploy it again at another release.
type Installed struct {
	Release versions.Release
	Image   string
	// Flags are those that it was deployed and its image was built with, --name=value each.
	Flags []string
	// Configuration is a KubeSchedulerConfiguration, or the legacy Policy if it reads one, without the extenders that pmk-sched added.
	Configuration []byte
	// APIVersion is the config API of the scheduler, and Credentials one of the Credentials constants.
	APIVersion  string
	Credentials string
}

// ReadInstalled reads what a deployed revision of a scheduler records.
func ReadInstalled(revision *apply.Revision) (*Installed, error) {
	plan, err := PlanOf(revision)
	if err != nil {
		return nil, err
	}
	if plan.Extender != nil {
		return nil, problem.Invalidf("one extender serves every release; to change it, deploy it again with `pmk-sched extender deploy`", "%s is an extender", revision.Name)
	}
	in := &Installed{
		Release: plan.Release, Image: plan.Scheduler.Image, Flags: plan.Scheduler.Flags, APIVersion: plan.base.APIVersion,
		Configuration: plan.base.YAML, Credentials: plan.Scheduler.Credentials.Mode,
	}
	if plan.base.Policy != nil {
		in.Configuration = plan.base.Policy
	}
	return in, nil
}
