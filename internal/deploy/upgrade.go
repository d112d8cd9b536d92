package deploy

import (
	"encoding/json"
	"fmt"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
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
	in := &Installed{Release: plan.Release, Image: plan.Scheduler.Image}
	for _, read := range []func(*apply.Revision) error{in.readFlags, in.readConfiguration, in.readCredentials} {
		if err := read(revision); err != nil {
			return nil, fmt.Errorf("read revision %d of %s: %w", revision.Number, revision.Name, err)
		}
	}
	return in, nil
}

func (in *Installed) readFlags(revision *apply.Revision) error {
	for _, o := range revision.Objects {
		text := o.GetAnnotations()[ownership.AnnotationFlags]
		if o.GetKind() != "Deployment" || text == "" {
			continue
		}
		if err := json.Unmarshal([]byte(text), &in.Flags); err != nil {
			return fmt.Errorf("decode annotation %s: %w", ownership.AnnotationFlags, err)
		}
	}
	return nil
}

func (in *Installed) readConfiguration(revision *apply.Revision) error {
	text, err := manifest.Configuration(revision.Objects, revision.Name)
	if err != nil {
		return err
	}
	found, err := profiles.Validate(profiles.ValidateRequest{Release: in.Release, Source: text, SourceName: "configuration"})
	if err != nil {
		return err
	}
	in.APIVersion = found.APIVersion
	if in.Configuration = manifest.LegacyPolicy(revision.Objects); in.Configuration != nil {
		return nil
	}
	wirings, err := manifest.Wirings(revision.Objects)
	if err != nil {
		return err
	}
	in.Configuration, _, err = profiles.SetExtenders(text, in.Release, addresses(wirings), nil)
	return err
}

func (in *Installed) readCredentials(revision *apply.Revision) error {
	report, err := DescribeCredentials(revision.Objects, revision.Namespace, revision.Name, nil)
	if err == nil {
		in.Credentials = report.Mode
	}
	return err
}
