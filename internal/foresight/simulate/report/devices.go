package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// DevicePool are the devices in a driver's pool on a node before and after the simulation.
type DevicePool struct {
	Driver string `json:"driver"`
	Pool   string `json:"pool"`
	// Node is empty for devices that several nodes reach.
	Node   string      `json:"node,omitempty"`
	Before DeviceCount `json:"before"`
	After  DeviceCount `json:"after"`
}

// DeviceCount counts devices. Devices that are neither allocated nor free are unavailable: their
// counters are used up, or they are tainted.
type DeviceCount struct {
	Devices   int `json:"devices"`
	Allocated int `json:"allocated"`
	Free      int `json:"free"`
	// Capacity is the capacity of devices that several claims can share, by its name.
	Capacity map[string]DeviceCapacity `json:"capacity,omitempty"`
}

// DeviceCapacity is a device capacity with the amount that claims consume.
type DeviceCapacity struct {
	Total    resource.Quantity `json:"total"`
	Consumed resource.Quantity `json:"consumed"`
}

// SharedCapacity returns how much of shared devices claims consume, before and after.
func (d DevicePool) SharedCapacity() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(d.After.Capacity)) {
		was, is := d.Before.Capacity[name], d.After.Capacity[name]
		all = append(all, name+" "+was.Consumed.String()+" → "+is.Consumed.String()+" of "+is.Total.String())
	}
	return strings.Join(all, ", ")
}

// ResourceSlice are the ResourceSlice fields that are counted, in any API version.
type ResourceSlice struct {
	Spec struct {
		Driver string `json:"driver"`
		Pool   struct {
			Name       string `json:"name"`
			Generation int64  `json:"generation"`
		} `json:"pool"`
		NodeName       string       `json:"nodeName"`
		Devices        []device     `json:"devices"`
		SharedCounters []counterSet `json:"sharedCounters"`
	} `json:"spec"`
}

// device is a device in a ResourceSlice. Up to v1beta1 its fields are in Basic.
type device struct {
	Name string `json:"name"`
	deviceFields
	Basic *deviceFields `json:"basic"`
}

type deviceFields struct {
	NodeName                 string             `json:"nodeName"`
	ConsumesCounters         []counterSet       `json:"consumesCounters"`
	AllowMultipleAllocations bool               `json:"allowMultipleAllocations"`
	Capacity                 map[string]counter `json:"capacity"`
	Taints                   []struct {
		Effect string `json:"effect"`
	} `json:"taints"`
}

// counterSet are a pool's counters, or the part that a device consumes.
type counterSet struct {
	Name       string             `json:"name"`
	CounterSet string             `json:"counterSet"`
	Counters   map[string]counter `json:"counters"`
}

type counter struct {
	Value resource.Quantity `json:"value"`
}

// ResourceClaim are the ResourceClaim fields that are counted.
type ResourceClaim struct {
	Status struct {
		Allocation *struct {
			Devices struct {
				Results []struct {
					Driver           string                       `json:"driver"`
					Pool             string                       `json:"pool"`
					Device           string                       `json:"device"`
					AdminAccess      bool                         `json:"adminAccess"`
					ConsumedCapacity map[string]resource.Quantity `json:"consumedCapacity"`
				} `json:"results"`
			} `json:"devices"`
		} `json:"allocation"`
	} `json:"status"`
}

// deviceKey identifies a device, or a counter set in a pool.
type deviceKey struct{ driver, pool, name string }

// Devices are the devices in ResourceSlices and the allocations in ResourceClaims. The zero value
// is ready to use.
type Devices struct {
	slices []*ResourceSlice
	// allocated is the capacity of each allocated device that claims consume.
	allocated map[deviceKey]map[string]resource.Quantity
}

// AddSlice adds the devices in a ResourceSlice.
func (d *Devices) AddSlice(s *ResourceSlice) {
	for i := range s.Spec.Devices {
		if one := &s.Spec.Devices[i]; one.Basic != nil {
			one.deviceFields = *one.Basic
		}
	}
	d.slices = append(d.slices, s)
}

// AddClaim adds the devices in a ResourceClaim. Devices to which it has administrative access only
// stay free.
func (d *Devices) AddClaim(c *ResourceClaim) {
	if c.Status.Allocation == nil {
		return
	}
	if d.allocated == nil {
		d.allocated = map[deviceKey]map[string]resource.Quantity{}
	}
	for _, r := range c.Status.Allocation.Devices.Results {
		if r.AdminAccess {
			continue
		}
		key := deviceKey{r.Driver, r.Pool, r.Device}
		consumed := d.allocated[key]
		if consumed == nil {
			consumed = map[string]resource.Quantity{}
			d.allocated[key] = consumed
		}
		addTo(consumed, r.ConsumedCapacity)
	}
}

func addTo(sum, more map[string]resource.Quantity) {
	for name, amount := range more {
		total := sum[name]
		total.Add(amount)
		sum[name] = total
	}
}

// current returns the slices from each pool's latest generation, which are the only ones that a
// scheduler uses (k8s.io/dynamic-resource-allocation/structured, GatherPools).
func (d *Devices) current() []*ResourceSlice {
	latest := map[deviceKey]int64{}
	for _, s := range d.slices {
		key := deviceKey{driver: s.Spec.Driver, pool: s.Spec.Pool.Name}
		latest[key] = max(latest[key], s.Spec.Pool.Generation)
	}
	return slices.DeleteFunc(slices.Clone(d.slices), func(s *ResourceSlice) bool {
		return s.Spec.Pool.Generation < latest[deviceKey{driver: s.Spec.Driver, pool: s.Spec.Pool.Name}]
	})
}

// poolKey identifies the devices in a pool on a node.
type poolKey struct{ driver, pool, node string }

// count counts the devices for each pool and node.
func (d *Devices) count() map[poolKey]DeviceCount {
	current := d.current()
	left := d.countersLeft(current)
	counts := map[poolKey]DeviceCount{}
	for _, s := range current {
		for i := range s.Spec.Devices {
			one := &s.Spec.Devices[i]
			key := poolKey{s.Spec.Driver, s.Spec.Pool.Name, cmp.Or(one.NodeName, s.Spec.NodeName)}
			c := counts[key]
			c.Devices++
			consumed, allocated := d.allocated[deviceKey{s.Spec.Driver, s.Spec.Pool.Name, one.Name}]
			switch {
			case allocated:
				c.Allocated++
			case !one.isTainted() && one.fits(s, left):
				c.Free++
			}
			if one.AllowMultipleAllocations {
				c.addCapacity(one.Capacity, consumed)
			}
			counts[key] = c
		}
	}
	return counts
}

// countersLeft returns the pools' counters without the amounts that allocated devices consume.
func (d *Devices) countersLeft(current []*ResourceSlice) map[deviceKey]map[string]resource.Quantity {
	left := map[deviceKey]map[string]resource.Quantity{}
	for _, s := range current {
		for _, set := range s.Spec.SharedCounters {
			counters := map[string]resource.Quantity{}
			for name, c := range set.Counters {
				counters[name] = c.Value.DeepCopy()
			}
			left[deviceKey{s.Spec.Driver, s.Spec.Pool.Name, set.Name}] = counters
		}
	}
	for _, s := range current {
		for i := range s.Spec.Devices {
			one := &s.Spec.Devices[i]
			if _, allocated := d.allocated[deviceKey{s.Spec.Driver, s.Spec.Pool.Name, one.Name}]; !allocated {
				continue
			}
			for _, set := range one.ConsumesCounters {
				counters := left[deviceKey{s.Spec.Driver, s.Spec.Pool.Name, set.CounterSet}]
				for name, c := range set.Counters {
					if amount, ok := counters[name]; ok {
						amount.Sub(c.Value)
						counters[name] = amount
					}
				}
			}
		}
	}
	return left
}

func (d *device) isTainted() bool {
	for _, taint := range d.Taints {
		if taint.Effect == "NoSchedule" || taint.Effect == "NoExecute" {
			return true
		}
	}
	return false
}

// fits reports whether the pool's counters suffice for the device.
func (d *device) fits(s *ResourceSlice, left map[deviceKey]map[string]resource.Quantity) bool {
	for _, set := range d.ConsumesCounters {
		counters := left[deviceKey{s.Spec.Driver, s.Spec.Pool.Name, set.CounterSet}]
		for name, c := range set.Counters {
			if amount := counters[name]; amount.Cmp(c.Value) < 0 {
				return false
			}
		}
	}
	return true
}

func (c *DeviceCount) addCapacity(total map[string]counter, consumed map[string]resource.Quantity) {
	if c.Capacity == nil {
		c.Capacity = map[string]DeviceCapacity{}
	}
	for name, amount := range total {
		sum := c.Capacity[name]
		sum.Total.Add(amount.Value)
		sum.Consumed.Add(consumed[name])
		c.Capacity[name] = sum
	}
}

// CompareDevices returns the pools in both states, ordered by driver, pool and node.
func CompareDevices(before, after *Devices) []DevicePool {
	was, is := before.count(), after.count()
	keys := map[poolKey]bool{}
	for _, counts := range []map[poolKey]DeviceCount{was, is} {
		for key := range counts {
			keys[key] = true
		}
	}
	sorted := slices.SortedFunc(maps.Keys(keys), func(a, b poolKey) int {
		return cmp.Or(cmp.Compare(a.driver, b.driver), cmp.Compare(a.pool, b.pool), cmp.Compare(a.node, b.node))
	})
	var pools []DevicePool
	for _, key := range sorted {
		pools = append(pools, DevicePool{Driver: key.driver, Pool: key.pool, Node: key.node,
			Before: was[key], After: is[key]})
	}
	return pools
}
