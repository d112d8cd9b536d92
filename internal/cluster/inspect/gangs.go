package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Gangs describes the cluster's API for gang scheduling: Kubernetes itself places the pods in a
// group together or not at all (from 1.35).
type Gangs struct {
	// API is the groups' apiVersion at the cluster's release: "scheduling.k8s.io/v1beta1".
	API string `json:"api"`
	// Gates are the feature gates that kube-scheduler needs for it.
	Gates []string `json:"gates"`
	// Served is set if the API server serves the API.
	Served bool `json:"served"`
	// DefaultScheduler is set if all default schedulers' flags enable the gates.
	DefaultScheduler bool `json:"defaultScheduler"`
}

// GateFlag returns the kube-scheduler flag that enables the gates.
func (g *Gangs) GateFlag() string {
	return "--feature-gates=" + strings.Join(g.Gates, "=true,") + "=true"
}

// String returns which of both places groups: Kubernetes itself or the bundled plugin.
func (g *Gangs) String() string {
	switch {
	case !g.Served:
		return "plugin coscheduling (" + g.API + " is not served, as by default)"
	case g.DefaultScheduler:
		return g.API + ", placed by the default scheduler"
	}
	return g.API + " is served; it needs a scheduler with " + g.GateFlag()
}

// gangs finds out whether Kubernetes itself can place pod groups.
func (d *detector) gangs(ctx context.Context) {
	needs := d.rules.Gangs
	if needs.API == "" {
		return
	}
	found := &Gangs{API: needs.API, Gates: needs.Gates, DefaultScheduler: len(d.info.Scheduler.Pods) > 0}
	for _, pod := range d.info.Scheduler.Pods {
		found.DefaultScheduler = found.DefaultScheduler && needs.Enabled(FeatureGates(pod.Command))
	}
	served, err := d.servesResource(ctx, needs.API, needs.Resource)
	if err != nil {
		d.warnUnread(err, "read the resources of "+needs.API,
			"whether the cluster has its own API for groups of pods is unknown")
		return
	}
	found.Served = served
	d.info.Gangs = found
}

// servesResource reports whether the API server serves a resource in an API group's version.
func (d *detector) servesResource(ctx context.Context, api, resource string) (bool, error) {
	raw, err := rawResult(d.core.RESTClient().Get().AbsPath("/apis/"+api).SetHeader("Accept",
		runtime.ContentTypeJSON).Do(ctx))
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(raw, &list); err != nil {
		return false, fmt.Errorf("decode the list of resources: %w", err)
	}
	for i := range list.APIResources {
		if list.APIResources[i].Name == resource {
			return true, nil
		}
	}
	return false, nil
}
