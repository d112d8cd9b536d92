package deploy

import (
	"fmt"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Installed is a deployed scheduler's record, from which another release is planned. It comes from
// a cluster, where others may write it: files on this machine are not read for it. The zero value
// is no record.
type Installed struct {
	Release versions.Release
	Image   string
	// Request is the request that it was deployed for, without Added, and Origin names its revision.
	Request *v1alpha1.CustomScheduler
	Origin  string
	// APIVersion is the scheduler's config API, and Credentials one of the Credentials constants.
	APIVersion  string
	Credentials string
	// Built is the recipe with which this machine built Image, or nil if it did not: this machine's
	// user named its sources and bases.
	Built *v1alpha1.Recipe
	// Added are extenders that `extender deploy` added, without their addresses.
	Added []profiles.Extender
}

// ReadInstalled reads the record in a scheduler's deployed revision.
func ReadInstalled(revision *apply.Revision) (*Installed, error) {
	plan, err := PlanOf(revision)
	if err != nil {
		return nil, err
	}
	if plan.Extender != nil {
		return nil,
			problem.Invalidf("one extender serves every release; to change it, deploy it again with `pmk-sched extender deploy`",
				"%s is an extender", revision.Name)
	}
	installed := &Installed{
		Release: plan.Release, Image: plan.Scheduler.Image, Request: plan.Request,
		APIVersion: plan.Scheduler.Configuration.APIVersion, Credentials: plan.Scheduler.Credentials.Mode,
		Origin: fmt.Sprintf("revision %d of %s", revision.Number, revision.Name),
	}
	var asked []v1alpha1.Extender
	for _, e := range plan.Request.Spec.Extenders {
		if at := e.Deployed; at != nil && at.Added {
			installed.Added = append(installed.Added, CallOf(e))
			continue
		}
		e.Deployed = nil
		asked = append(asked, e)
	}
	installed.Request.Spec.Extenders = asked
	return installed, nil
}
