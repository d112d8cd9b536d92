package simulate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/versions"
)

// devices is the state of dynamic resource allocation in a run.
type devices struct {
	templates scenario.ClaimTemplates
	// claims are the ResourceClaims' namespaces and names, and consumers the running pods that use
	// them.
	claims    map[string]bool
	consumers map[string][]scenario.Consumer
	// ended are the UIDs of finished pods with claims, and pods counts unfinished ones.
	ended map[string]bool
	pods  int
	// gates are the feature gates that the objects need.
	gates map[string]bool
	// groups is set if a PodGroup has claims.
	groups bool
}

func newDevices() devices {
	return devices{templates: scenario.ClaimTemplates{}, claims: map[string]bool{},
		consumers: map[string][]scenario.Consumer{}, ended: map[string]bool{}, gates: map[string]bool{}}
}

// claimKind is the kind ResourceClaim, and sliceKind the kind ResourceSlice.
func claimKind() *snapshot.Kind { return deviceKind("ResourceClaim") }
func sliceKind() *snapshot.Kind { return deviceKind("ResourceSlice") }

func deviceKind(name string) *snapshot.Kind {
	kind, _ := snapshot.Find(snapshot.Kinds(), "resource.k8s.io/v1", name)
	return kind
}

// add adds an object of the simulation.
func (d *devices) add(kind *snapshot.Kind, key string, o map[string]any, action scenario.Action) {
	for _, gate := range scenario.DeviceGates(kind, o) {
		d.gates[gate] = true
	}
	switch kind.Name {
	case "ResourceClaimTemplate":
		d.templates.Add(o)
	case "ResourceClaim":
		d.claims[key] = true
	case "PodGroup", "CompositePodGroup":
		spec, _ := o["spec"].(map[string]any)
		d.groups = d.groups || spec["resourceClaims"] != nil
	case "Pod":
		d.addPod(o, action)
	}
}

func (d *devices) addPod(pod map[string]any, action scenario.Action) {
	if !scenario.HasClaims(pod) {
		return
	}
	scenario.SetUID(pod)
	switch {
	case scenario.IsFinished(pod):
		d.ended[snapshot.UID(pod)] = true
		return
	case action == scenario.Keep:
		namespace, name := scenario.NameOf(pod)
		for _, claim := range scenario.ClaimsOf(pod) {
			claim = namespace + "/" + claim
			d.consumers[claim] = append(d.consumers[claim], scenario.Consumer{Name: name, UID: snapshot.UID(pod)})
		}
	}
	d.pods++
}

// makeClaims makes the claims for the waiting pods that have none, as the controller does.
func (r *Run) makeClaims() error {
	absent := map[string]int{}
	for i := range r.Waiting {
		w := &r.Waiting[i]
		if !strings.Contains(string(w.Pod), `"resourceClaims"`) {
			continue
		}
		pod, err := snapshot.Decode(w.Pod)
		if err != nil {
			return fmt.Errorf("read pod %s: %w", w.Key, err)
		}
		namespace, _ := scenario.NameOf(pod)
		made, missing := r.devices.templates.Make(pod,
			func(claim string) bool { return r.devices.claims[namespace+"/"+claim] })
		for _, template := range missing {
			absent[template]++
		}
		if len(made) == 0 {
			continue
		}
		if w.Pod, err = snapshot.Encode(pod); err != nil {
			return err
		}
		for _, o := range made {
			if r.deferred[w.UID], err = deferObject(r.deferred[w.UID], o.Kind, o.Version, o.Fields); err != nil {
				return err
			}
		}
	}
	for _, template := range slices.Sorted(maps.Keys(absent)) {
		r.note("%s for claims from the ResourceClaimTemplate %s, which the snapshot does not have",
			plural.Phrase(absent[template], "pod waits", "pods wait"), template)
	}
	return nil
}

// countDevices adds a slice or a claim from the snapshot to the devices before the simulation.
func (r *Run) countDevices(kind *snapshot.Kind, o map[string]any, into *report.Devices) error {
	switch kind.Name {
	case "ResourceSlice":
		s := &report.ResourceSlice{}
		if err := snapshot.Convert(o, s); err != nil {
			return err
		}
		into.AddSlice(s)
	case "ResourceClaim":
		c := &report.ResourceClaim{}
		if err := snapshot.Convert(o, c); err != nil {
			return err
		}
		into.AddClaim(c)
	}
	return nil
}

// readDevices reads the devices after the simulation. Without the API there are none, also before.
func (r *Run) readDevices(ctx context.Context, after *report.Usage) error {
	if len(r.devices.gates) == 0 {
		r.usage.Devices = report.Devices{}
		return nil
	}
	client, err := dynamic.NewForConfig(r.Config())
	if err != nil {
		return err
	}
	for _, kind := range []*snapshot.Kind{sliceKind(), claimKind()} {
		resource := r.Loader.Resource(kind)
		if resource.Empty() {
			r.usage.Devices = report.Devices{}
			return nil
		}
		options := metav1.ListOptions{Limit: pageSize}
		for page, err := range kubeapi.Pages(ctx, client.Resource(resource).List, options) {
			if err != nil {
				return kubeapi.Explain("read "+kind.GroupResource(), err)
			}
			for i := range page.Items {
				if err := r.countDevices(kind, page.Items[i].Object, &after.Devices); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// deviceArgs are the flags for a scheduler or an API server at a release that set feature gates
// which are disabled there by default.
func deviceArgs(release versions.Release, gates []string) (args, enabled []string) {
	if len(release.Rules().DeviceAPIs) == 0 {
		return nil, nil
	}
	known := release.Gates()
	for _, gate := range gates {
		if g := known[gate]; g.Exists && !g.Default && !g.Locked {
			enabled = append(enabled, gate)
		}
	}
	if len(enabled) == 0 {
		return nil, nil
	}
	return []string{"--feature-gates=" + strings.Join(enabled, "=true,") + "=true"}, enabled
}

// noteDevices adds notes about the limits of a simulation with devices.
func (r *Run) noteDevices() {
	d := &r.devices
	if r.Loader.Resource(claimKind()).Empty() {
		if len(d.gates)+d.pods > 0 {
			r.note("%s has no dynamic resource allocation as in the snapshot: %s", r.Options.Scheduler.Release,
				plural.Phrase(d.pods, "pod with ResourceClaims is scheduled without its devices",
					"pods with ResourceClaims are scheduled without their devices"))
		}
		return
	}
	if len(d.gates) == 0 {
		return
	}
	r.note("devices: no driver runs. ResourceSlices stay as they are, and how drivers prepare devices is unknown")
	if _, enabled := deviceArgs(r.Options.Scheduler.Release, slices.Sorted(maps.Keys(d.gates))); len(enabled) > 0 {
		r.note("devices: feature gates %s are enabled, because objects of the snapshot need them", strings.Join(enabled, ", "))
	}
	for _, unknown := range []struct {
		applies bool
		text    string
	}{
		{d.gates["DRADeviceBindingConditions"], "binding conditions are met at once"},
		{d.gates["DRAPrioritizedList"], "the alternatives of prioritized lists that running pods got are not reconsidered"},
		{d.gates["DRADeviceTaints"], "pods are not evicted from devices with the taint effect NoExecute, and free devices are " +
			"counted without tolerations and without the taints of DeviceTaintRules"},
		{d.gates["DRAExtendedResource"], "whether a node's device plugin or a driver serves an extended resource is decided by " +
			"the allocatable resources of the node, as in the snapshot"},
		{d.groups, "claims of PodGroups are not made from templates"},
	} {
		if unknown.applies {
			r.note("devices: %s", unknown.text)
		}
	}
}
