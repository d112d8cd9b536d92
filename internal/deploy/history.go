package deploy

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// HistoryEntry describes one revision of a scheduler or extender.
type HistoryEntry struct {
	Revision int       `json:"revision"`
	Time     time.Time `json:"time"`
	// By is the user and the machine that deployed the revision. It is empty if an older pmk-sched
	// did.
	By string `json:"by,omitempty"`
	// Status of the revision, or [DamagedRevision]. Current is set for the last deployed revision.
	Status  apply.RevisionStatus `json:"status"`
	Current bool                 `json:"current,omitempty"`
	// Release is the scheduler's Kubernetes release.
	Release string `json:"release,omitempty"`
	// Image is the image without its digest, which is empty if it was unknown.
	Image  string `json:"image,omitempty"`
	Digest string `json:"digest,omitempty"`
	// Configuration is the ConfigMap with the configuration; its name has a hash of the content.
	Configuration string `json:"configuration,omitempty"`
	// Plugins are the compiled-in plugins that the configuration names. Extenders are the extenders
	// that pmk-sched deployed for the scheduler.
	Plugins   []string `json:"plugins,omitempty"`
	Extenders []string `json:"extenders,omitempty"`
	// Description, Origin and Reason of the revision. For a damaged revision, Reason is the error from
	// reading it.
	Description string `json:"description,omitempty"`
	Origin      string `json:"origin,omitempty"`
	Reason      string `json:"reason,omitempty"`
}

// DamagedRevision is the status of a revision whose objects cannot be read.
const DamagedRevision apply.RevisionStatus = "damaged"

// History describes revisions, in their order. read reads one of them; History keeps none.
func History(ctx context.Context, revisions []apply.RevisionInfo, read ReadRevision) ([]HistoryEntry, error) {
	entries := []HistoryEntry{} // a list in JSON too
	current := apply.LastDeployed(revisions)
	for _, info := range revisions {
		entry := HistoryEntry{
			Revision: info.Number, Time: info.Created, By: info.By, Status: info.Status,
			Current: current != nil && info.Number == current.Number, Description: info.Description, Origin: info.Origin,
			Reason: info.Reason,
		}
		r, err := read(ctx, info)
		if err != nil {
			return nil, err
		}
		if err = r.Damage; err == nil {
			err = entry.describe(r)
		}
		if err != nil {
			entry.Status, entry.Reason = DamagedRevision, err.Error()
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

// describe sets the fields that are read from the revision's record and objects.
func (e *HistoryEntry) describe(r *apply.Revision) error {
	plan, err := PlanOf(r)
	if err != nil {
		return err
	}
	e.Image, e.Digest, _ = strings.Cut(plan.Scheduler.Image, "@")
	for _, w := range plan.Scheduler.Wirings {
		e.Extenders = append(e.Extenders, w.Extender.Name)
	}
	if plan.Extender != nil {
		return nil
	}
	e.Release = plan.Release.String()
	if e.Configuration = configurationName(r.Objects, r.Name); e.Configuration == "" {
		return nil
	}
	text, err := manifest.Configuration(r.Objects, r.Name)
	if err != nil {
		return err
	}
	found, err := profiles.Validate(profiles.ValidateRequest{Release: plan.Release, Source: text,
		SourceName: e.Configuration})
	if err != nil {
		return fmt.Errorf("read the configuration of revision %d: %w", r.Number, err)
	}
	e.Plugins = found.Plugins
	return nil
}

// configurationName returns the name of the ConfigMap with a scheduler's configuration, or "".
func configurationName(objects []*unstructured.Unstructured, name string) string {
	for _, o := range objects {
		if _, found, _ := unstructured.NestedString(o.Object, "data", name+".yaml"); found && o.GetKind() == "ConfigMap" &&
			ownership.Owns(o.GetLabels(), name) {
			return o.GetName()
		}
	}
	return ""
}
