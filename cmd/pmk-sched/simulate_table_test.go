package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

func TestSimulationTable(t *testing.T) {
	r := &report.Report{
		Scenario: "add", Release: "v1.24.3", Scheduler: "packer", Notes: []string{"a note"},
		Placements: []report.Placement{{Namespace: "shop", Name: "web-1", Node: "b"},
			{Namespace: "shop", Name: "web-2", From: "a", Node: "b"}},
		Unplaced: []report.Unplaced{{Namespace: "shop", Name: "web-3", Reason: "no room"},
			{Namespace: "shop", Name: "web-4", Reason: "no room"}},
		Capacity: &report.Capacity{Copies: 2, PodsPerCopy: 3,
			Stop: &report.Unplaced{Namespace: "shop", Name: "web-9", Reason: "Insufficient cpu"}},
		Comparison: &report.Comparison{
			Against: "default", Release: "v1.24.3", Scheduler: "default-scheduler", Same: 1,
			Baseline:    report.Summary{Placed: 2, Scheduled: 4},
			Repeated:    report.Summary{Placed: 3, Evicted: 1},
			Differences: []report.Difference{{Namespace: "shop", Name: "web-1", Node: "b"}}, Noise: []report.Difference{{}, {}},
		},
		Steps: []*report.Report{{Scenario: "drain", Summary: report.Summary{Placed: 1, Scheduled: 2}}},
	}
	var before, after report.Usage
	for _, u := range []*report.Usage{&before, &after} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b", Labels: map[string]string{corev1.LabelTopologyZone: "z"}}}
		n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("10")}
		u.AddNode(n)
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"},
		Spec: corev1.PodSpec{NodeName: "b", Containers: []corev1.Container{{}}}}
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1")}
	after.AddPod(p)
	r.Measure(&before, &after)
	r.Devices = []report.DevicePool{
		{Driver: "gpu", Pool: "b", Node: "b", Before: report.DeviceCount{Devices: 2, Free: 2},
			After: report.DeviceCount{Devices: 2, Free: 2}},
		{Driver: "nic", Pool: "rack", Before: report.DeviceCount{Devices: 4, Allocated: 1, Free: 3},
			After: report.DeviceCount{Devices: 4, Allocated: 2, Free: 2, Capacity: map[string]report.DeviceCapacity{
				"bandwidth": {Total: resource.MustParse("10G"), Consumed: resource.MustParse("3G")}}}},
	}
	r.Price([]report.Price{{Label: corev1.LabelTopologyZone, Value: "z", Price: 0.25}, {Label: "other", Price: 1}})
	r.Finish()
	const want = `step 1, drain: 1 of 2 pods placed, 0 moved, 0 unplaced, 0 evicted
2 of 4 pods placed on 0 nodes by packer v1.24.3, 1 moved, 2 unplaced, 0 evicted

RESOURCE	ALLOCATABLE	BEFORE	AFTER	VARIATION	LARGEST POD	STRANDED
cpu	4	0.0 %	25.0 %	0.00 → 0.00	4 → 3	0 → 0
pods	10	0.0 %	10.0 %	0.00 → 0.00	10 → 9	0 → 0

empty nodes: 1 → 0
cost: of all nodes 0.25 → 0.25, of empty nodes 0.25 → 0

NODE TYPE	PRICE	NODES	EMPTY
topology.kubernetes.io/zone=z	0.25	1 → 1	1 → 0

ZONE	NODES	PODS	CPU
z	1 → 1	0 → 1	0.0 % → 25.0 %

DRIVER	POOL	NODE	DEVICES	ALLOCATED	FREE	SHARED CAPACITY
nic	rack	-	4	1 → 2	3 → 2	bandwidth 0 → 3G of 10G
gpu	b	b	2	0 → 0	2 → 2	-

2 copies fit (6 pods); then shop/web-9 does not: Insufficient cpu

compared with default (default-scheduler v1.24.3): 1 pod is placed the same, 1 differently; 2 differ between two runs of it

RUN OF default	PLACED	EVICTED	EMPTY NODES	COST OF EMPTY NODES
1	2	0	-	-
2	3	1	-	-

DIFFERENT POD	NODE	NODE BY default
shop/web-1	b	-

POD	FROM	NODE
shop/web-1	-	b
shop/web-2	a	b

UNPLACED	FOR EXAMPLE	REASON
2	shop/web-3	no room

note: a note

note: no node costs the price of other=

packer: 2 of 4 pods placed, empty nodes cost 0 of 0.25 units (0.0 %)
default: 2 of 4 pods placed
packer is neither better nor worse than default in these figures
`
	if diff := cmp.Diff(want, simulationTable(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
