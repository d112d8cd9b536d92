package report

import (
	"cmp"
	"math"
	"slices"
)

// Distribution is the distribution of requests over the nodes.
type Distribution struct {
	Resources []Balance `json:"resources"`
	// EmptyNodes have only DaemonSet pods and static pods.
	EmptyNodes []string `json:"emptyNodes"`
	// Cost is the nodes' cost, if prices are known.
	Cost *Cost `json:"cost,omitempty"`
	// Zones are the nodes' zones. Nodes without a zone are left out.
	Zones []Zone `json:"zones"`
	// Workloads is the number of controllers with several pods on nodes that have a zone, OneZone the
	// number with all these pods in the same zone.
	Workloads int `json:"workloads"`
	OneZone   int `json:"workloadsInOneZone"`
}

// Balance is the distribution of one resource over the nodes that have it.
type Balance struct {
	Resource string `json:"resource"`
	// Mean is the mean of the nodes' utilizations, CoefficientOfVariation their standard deviation
	// divided by it: 0 is even. Jain is Jain's index: 1 is even, 1/n if one of n nodes has everything.
	Mean                   float64 `json:"mean"`
	CoefficientOfVariation float64 `json:"coefficientOfVariation"`
	Jain                   float64 `json:"jain"`
	// LargestFree is the most that a pod can request and still fit on a schedulable node.
	LargestFree string `json:"largestFree"`
	// Stranded is the free amount on nodes that lack a second resource among CPU, memory and pods,
	// that is, have less than 5 % of it free. StrandedPart is its part in all nodes' allocatable
	// amount.
	Stranded     string  `json:"stranded"`
	StrandedPart float64 `json:"strandedPart"`
}

// Zone is the nodes and pods in a zone.
type Zone struct {
	Name  string `json:"name"`
	Nodes int    `json:"nodes"`
	Pods  int    `json:"pods"`
	// CPU is the requested part.
	CPU float64 `json:"cpu"`
}

// BalanceChange is one resource's distribution before and after.
type BalanceChange struct {
	Resource      string
	Before, After Balance
}

// ZoneChange is a zone before and after.
type ZoneChange struct {
	Name          string
	Before, After Zone
}

// Balances returns the distributions of all resources that nodes have afterwards.
func (s *Summary) Balances() []BalanceChange {
	if s.Before == nil || s.After == nil {
		return nil
	}
	var all []BalanceChange
	for _, after := range s.After.Resources {
		change := BalanceChange{Resource: after.Resource, After: after}
		for _, before := range s.Before.Resources {
			if before.Resource == after.Resource {
				change.Before = before
			}
		}
		all = append(all, change)
	}
	return all
}

// Zones returns the nodes' zones afterwards.
func (s *Summary) Zones() []ZoneChange {
	if s.Before == nil || s.After == nil {
		return nil
	}
	var all []ZoneChange
	for _, after := range s.After.Zones {
		change := ZoneChange{Name: after.Name, After: after}
		for _, before := range s.Before.Zones {
			if before.Name == after.Name {
				change.Before = before
			}
		}
		all = append(all, change)
	}
	return all
}

// lacking is the free part of a resource below which a node lacks it.
const lacking = 0.05

// Distribute returns a state's distribution for resources.
func Distribute(u *Usage, resources []string) *Distribution {
	nodes := u.List()
	d := &Distribution{Resources: []Balance{}, EmptyNodes: []string{}, Zones: []Zone{}}
	for _, resource := range resources {
		d.Resources = append(d.Resources, balance(nodes, resource))
	}
	for _, n := range nodes {
		if n.Empty() {
			d.EmptyNodes = append(d.EmptyNodes, n.Name)
		}
	}
	d.addZones(nodes)
	return d
}

func balance(nodes []*Node, resource string) Balance {
	b := Balance{Resource: resource}
	var count, sum, squares float64
	var largest, stranded, total int64
	for _, n := range nodes {
		if n.Allocatable[resource] == 0 {
			continue
		}
		part := n.Utilization(resource)
		count, sum, squares = count+1, sum+part, squares+part*part
		total += n.Allocatable[resource]
		switch {
		case lacks(n, resource):
			stranded += n.free(resource)
		case !n.Unschedulable && n.free("pods") > 0:
			largest = max(largest, n.free(resource))
		}
	}
	b.LargestFree, b.Stranded = Amount(resource, largest), Amount(resource, stranded)
	if count == 0 {
		return b
	}
	b.StrandedPart = float64(stranded) / float64(total)
	b.Mean, b.Jain = sum/count, 1
	if sum > 0 {
		b.Jain = sum * sum / (count * squares)
		b.CoefficientOfVariation = math.Sqrt(max(squares/count-b.Mean*b.Mean, 0)) / b.Mean
	}
	return b
}

// lacks reports whether a node lacks another resource that every pod needs.
func lacks(n *Node, resource string) bool {
	for _, other := range []string{"cpu", "memory", "pods"} {
		if has := n.Allocatable[other]; other != resource && has > 0 && float64(n.free(other)) < lacking*float64(has) {
			return true
		}
	}
	return false
}

// addZones adds the zones, and counts the workloads that are in a single zone.
func (d *Distribution) addZones(nodes []*Node) {
	zones := map[string]*Zone{}
	requested, allocatable := map[string]int64{}, map[string]int64{}
	type workload struct {
		pods  int
		zones map[string]bool
	}
	workloads := map[podKey]*workload{}
	for _, n := range nodes {
		if n.Zone == "" {
			continue
		}
		if zones[n.Zone] == nil {
			zones[n.Zone] = &Zone{Name: n.Zone}
		}
		zones[n.Zone].Nodes++
		zones[n.Zone].Pods += len(n.Pods)
		requested[n.Zone] += n.Requested["cpu"]
		allocatable[n.Zone] += n.Allocatable["cpu"]
		for _, p := range n.Pods {
			if p.Owner == "" || p.Fixed {
				continue
			}
			key := podKey{p.Namespace, p.Owner}
			if workloads[key] == nil {
				workloads[key] = &workload{zones: map[string]bool{}}
			}
			workloads[key].pods++
			workloads[key].zones[n.Zone] = true
		}
	}
	for name, z := range zones {
		if allocatable[name] > 0 {
			z.CPU = float64(requested[name]) / float64(allocatable[name])
		}
		d.Zones = append(d.Zones, *z)
	}
	slices.SortFunc(d.Zones, func(a, b Zone) int { return cmp.Compare(a.Name, b.Name) })
	for _, w := range workloads {
		if w.pods > 1 {
			d.Workloads++
			if len(w.zones) == 1 {
				d.OneZone++
			}
		}
	}
}
