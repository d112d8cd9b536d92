package numaaware

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/customresource"
)

// nodeResourceTopologies are objects that agents such as node-feature-discovery write for their
// nodes.
func nodeResourceTopologies() schema.GroupVersionResource {
	return schema.GroupVersionResource{
		Group: "topology.node.k8s.io", Version: "v1alpha2", Resource: "noderesourcetopologies",
	}
}

// topologyOf returns a node's topology, nil if it is not known.
func (p *NUMAAware) topologyOf(node string) *topology {
	t, _ := p.topologies.Get(node).(*topology)
	return t
}

// readTopology returns an object's topology.
func readTopology(u *unstructured.Unstructured) (interface{}, error) {
	t, err := parse(u.Object)
	if err != nil {
		return nil, err
	}
	t.version = versionOf(u.GetResourceVersion())
	return t, nil
}

// The kubelet topology manager's policies and scopes, in its configuration's spelling.
const (
	policySingle = "single-numa-node"
	scopePod     = "pod"
)

// mostZones and mostResources are the maximum numbers of zones and resources in a topology: Filter
// reads all of them for each pod. The kubelet's topology manager supports 8 NUMA nodes by default
// (pkg/kubelet/cm/topologymanager/topology_manager.go).
const (
	mostZones     = 256
	mostResources = 256
)

type topology struct {
	// version is the object's resource version, 0 if that is not a number.
	version uint64
	// single is set if the kubelet rejects pods that do not get their resources from one zone; pod, if
	// all containers share it.
	single, pod bool
	zones       []zone
	// has are the resources of zones; other resources are not tied to a zone.
	has map[corev1.ResourceName]bool
}

type zone struct {
	allocatable, available amounts
}

// object is the part of a NodeResourceTopology (topology.node.k8s.io/v1alpha2) that the plugin
// reads. v1alpha1 has no attributes.
type object struct {
	TopologyPolicies []string    `json:"topologyPolicies"`
	Attributes       []attribute `json:"attributes"`
	Zones            []struct {
		Type      string `json:"type"`
		Resources []struct {
			Name        corev1.ResourceName     `json:"name"`
			Capacity    customresource.Quantity `json:"capacity"`
			Allocatable customresource.Quantity `json:"allocatable"`
			Available   customresource.Quantity `json:"available"`
		} `json:"resources"`
	} `json:"zones"`
}

type attribute struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// parse reads a NodeResourceTopology. Zones of other types than Node, which is a NUMA node, are
// ignored.
func parse(content map[string]interface{}) (*topology, error) {
	var o object
	text, err := json.Marshal(content)
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err != nil {
		return nil, fmt.Errorf("read NodeResourceTopology: %w", err)
	}
	if len(o.Zones) > mostZones {
		return nil, fmt.Errorf("it has %d zones, more than %d", len(o.Zones), mostZones)
	}
	t := &topology{has: map[corev1.ResourceName]bool{}}
	for _, policy := range o.TopologyPolicies { // attributes take precedence
		t.single, t.pod = strings.HasPrefix(policy, "SingleNUMANode"), strings.HasSuffix(policy, "PodLevel")
	}
	for _, a := range o.Attributes {
		switch a.Name {
		case "topologyManagerPolicy":
			t.single = a.Value == policySingle
		case "topologyManagerScope":
			t.pod = a.Value == scopePod
		}
	}
	for _, z := range o.Zones {
		if z.Type != "Node" {
			continue
		}
		one := zone{allocatable: amounts{}, available: amounts{}}
		for _, r := range z.Resources {
			allocatable := r.Allocatable.Quantity
			if allocatable.IsZero() { // an agent may write the capacity only
				allocatable = r.Capacity.Quantity
			}
			one.allocatable.Add(scheduler.NewAmounts(corev1.ResourceList{r.Name: allocatable}), 1)
			one.available.Add(scheduler.NewAmounts(corev1.ResourceList{r.Name: r.Available.Quantity}), 1)
			t.has[r.Name] = true
		}
		if len(t.has) > mostResources {
			return nil, fmt.Errorf("its zones have more than %d resources", mostResources)
		}
		t.zones = append(t.zones, one)
	}
	return t, nil
}

// without returns the zones if pods that are not known to them yet took their resources from each:
// which one they get is the kubelet's decision.
func (t *topology) without(used amounts) []zone {
	if used == nil {
		return t.zones
	}
	zones := make([]zone, len(t.zones))
	for i, z := range t.zones {
		zones[i] = zone{allocatable: z.allocatable, available: amounts{}}
		for name, amount := range z.available {
			zones[i].available[name] = scheduler.Sum(amount, -used[name])
		}
	}
	return zones
}

// parts returns the requests that get a zone as a unit: those by container, or the whole pod.
func (t *topology) parts(n *need) []amounts {
	if t.pod {
		return n.pod
	}
	return n.running
}

// noZone is the zone of a part that needs nothing from zones.
const noZone = -1

// place puts the parts of a pod into zones as the kubelet does with the policy single-numa-node,
// each into the first one that has room. It returns false if a part does not fit.
func (t *topology) place(n *need, zones []zone, placed *placement) (ok bool) {
	*placed = placement{parts: t.parts(n)}
	for _, one := range placed.parts {
		z, ok := t.find(one, zones, placed)
		if !ok {
			return false
		}
		placed.add(z, zones)
	}
	if t.pod {
		return true
	}
	sidecars := placement{parts: n.running}
	for _, one := range n.init { // they end before the containers start, so that they keep nothing
		for sidecars.count < one.Sidecars {
			sidecars.add(placed.zone(sidecars.count), zones)
		}
		if _, ok := t.find(one.Need, zones, &sidecars); !ok {
			return false
		}
	}
	return true
}

// find returns the first zone with room for a part in addition to those that are placed.
func (t *topology) find(one amounts, zones []zone, placed *placement) (int, bool) {
	needed := false
	for name := range one {
		needed = needed || t.has[name]
	}
	if !needed {
		return noZone, true
	}
	for z := range zones {
		if t.fits(one, z, zones, placed) {
			return z, true
		}
	}
	return 0, false
}

func (t *topology) fits(one amounts, z int, zones []zone, placed *placement) bool {
	for name, amount := range one {
		if t.has[name] && scheduler.Sum(zones[z].available[name], -placed.of(z, name)) < amount {
			return false
		}
	}
	return true
}
