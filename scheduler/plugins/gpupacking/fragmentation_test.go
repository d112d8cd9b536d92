package gpupacking

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// node has 8 cores, and devices of 1000 units.
func node(free ...int64) room { return room{cpu: 8000, whole: 1000, free: free} }

// The paper's two cases of F_n(m): the pod cannot run on the node, so that all free GPU is of no
// use to it, or it can, and the devices with less than it needs of one are.
func TestFragmentOfAPod(t *testing.T) {
	for _, tt := range []struct {
		name string
		room room
		pod  demand
		want int64
	}{
		{"a share, every device has enough", node(500, 1000), demand{1000, 500}, 0},
		{"a share, one device has too little", node(400, 1000), demand{1000, 500}, 400},
		{"a share, no device has enough", node(400, 300), demand{1000, 500}, 700},
		{"a whole device, parts are of no use", node(500, 1000, 999), demand{1000, 1000}, 1499},
		{"two devices, one is free", node(1000, 600), demand{1000, 2000}, 1600},
		{"two devices, two are free", node(1000, 600, 1000), demand{1000, 2000}, 600},
		{"lack of CPU", node(1000, 1000), demand{8001, 500}, 2000},
		{"no device is needed", node(300, 1000), demand{1000, 0}, 1300},
		{"neither a share nor whole devices", node(1000, 1000), demand{1000, 1500}, 2000},
		{"nothing is free", node(0, 0), demand{1000, 500}, 0},
	} {
		if got := tt.room.fragment(tt.pod); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// A quarter of the pods may have any model, a quarter requires T4, and half requires P100 or G2.
func TestPodsThatRequireAnotherModelUseNoDevice(t *testing.T) {
	w := workload{{demand: demand{0, 1000}, share: 1, choosy: 0.75,
		models: map[string]float64{"T4": 0.25, "P100": 0.5, "G2": 0.5}}}
	for model, want := range map[string]float64{
		"T4": 0.5*400 + 0.5*1400, "P100": 0.75*400 + 0.25*1400, "": 0.25*400 + 0.75*1400,
	} {
		r := room{cpu: 8000, whole: 1000, free: []int64{400, 1000}, model: model}
		if got := w.fragment(r); math.Abs(got-want) > 1e-9 {
			t.Errorf("%q: fragment %v, want %v", model, got, want)
		}
		// A pod that may have any model uses a free device: the fragment is 400 for all pods.
		if _, growth, ok := w.place(r, demand{0, 1000}); !ok || math.Abs(growth-(400-want)) > 1e-9 {
			t.Errorf("%q: growth %v, want %v", model, growth, 400-want)
		}
	}
}

// F_n(M) is the sum over the classes: 0.5×400 + 0.3×(400+1000, lack of CPU) + 0.2×400 (a whole
// device: only the part is lost).
func TestFragmentOfAWorkloadIsTheWeightedSum(t *testing.T) {
	w := workload{{demand: demand{1000, 500}, share: 0.5}, {demand: demand{9000, 100}, share: 0.3},
		{demand: demand{1000, 1000}, share: 0.2}}
	if got, want := w.fragment(node(400, 1000)), 0.5*400+0.3*1400+0.2*400; math.Abs(got-want) > 1e-9 {
		t.Errorf("%v, want %v", got, want)
	}
	if got := (workload)(nil).fragment(node(400)); got != 0 {
		t.Errorf("without a workload: %v", got)
	}
}

func TestPlaceDescendsSteepest(t *testing.T) {
	half := workload{{demand: demand{0, 500}, share: 1}}
	mixed := workload{{demand: demand{0, 300}, share: 0.5}, {demand: demand{0, 1000}, share: 0.5}}
	for _, tt := range []struct {
		name    string
		mix     workload
		room    room
		pod     demand
		devices []int
		growth  float64
	}{
		// After: device 0 has 400, which no half fits in: 400 more. Device 1 has 0: none. Device 2 has
		// 500: none, but more is left.
		{"the rest is usable", half, node(900, 500, 1000), demand{0, 500}, []int{1}, 0},
		// Device 0 has 500 after: for a pod of 300 still usable, for a whole one 500 instead of 700 are
		// lost: 0.5×-200. Device 1 has 800 after: 0.5×+800 for a whole one.
		{"a device that is in use already", mixed, node(700, 1000), demand{0, 200}, []int{0}, -100},
		// 200 are of no use to anyone before, and are gone after: 0.5×-200 and 0.5×-200.
		{"a rest that is of no use to others", mixed, node(200, 1000), demand{0, 200}, []int{0}, -200},
		{"whole devices", mixed, node(500, 1000, 1000, 1000), demand{0, 2000}, []int{1, 2}, 0},
		// The last whole device is taken: 500 of the other stay lost for a whole one.
		{"the last whole device", mixed, node(500, 1000), demand{0, 1000}, []int{1}, 0},
		{"no device", mixed, node(500, 1000), demand{1000, 0}, nil, 0},
		{"without a workload, the fullest", nil, node(800, 600, 600), demand{0, 500}, []int{1}, 0},
	} {
		devices, growth, ok := tt.mix.place(tt.room, tt.pod)
		if diff := cmp.Diff(tt.devices, devices); diff != "" || !ok || math.Abs(growth-tt.growth) > 1e-9 {
			t.Errorf("%s: devices %v, growth %v, %v", tt.name, devices, growth, ok)
		}
	}
}

// A pod that takes the last CPU of a node strands its GPUs: both are then of no use to the
// workload.
func TestPlaceCountsGPUsThatLackCPU(t *testing.T) {
	w := workload{{demand: demand{4000, 500}, share: 1}}
	for _, tt := range []struct {
		cpu  int64
		want float64
	}{{4000, 0}, {4001, 2000}} {
		if _, growth, ok := w.place(node(1000, 1000), demand{tt.cpu, 0}); !ok || growth != tt.want {
			t.Errorf("%d of 8000: growth %v, want %v", tt.cpu, growth, tt.want)
		}
	}
}

func TestPlaceRefusesWhatDoesNotFit(t *testing.T) {
	for name, pod := range map[string]demand{
		"a share": {0, 701}, "whole devices": {0, 1000}, "CPU": {8001, 100}, "odd": {0, 1001},
	} {
		if devices, _, ok := (workload)(nil).place(node(700, 600), pod); ok {
			t.Errorf("%s: placed on %v", name, devices)
		}
	}
}

// place does not change its room: other pods are placed with it at the same time.
func TestPlaceDoesNotChangeTheRoom(t *testing.T) {
	r := node(700, 1000)
	for _, gpu := range []int64{0, 300, 1000} {
		if _, _, ok := (workload{{demand: demand{0, 300}, share: 1}}).place(r, demand{0, gpu}); !ok {
			t.Fatalf("%d does not fit", gpu)
		}
	}
	if diff := cmp.Diff([]int64{700, 1000}, r.free); diff != "" || r.cpu != 8000 {
		t.Errorf("room %+v", r)
	}
}

func BenchmarkPlaceAShareOnEightDevices(b *testing.B) {
	var w workload
	for i := range maxClasses {
		w = append(w, class{demand: demand{int64(500 * i), int64(30*i + 30)}, share: 1.0 / maxClasses})
	}
	r := node(1000, 900, 800, 700, 600, 500, 400, 300)
	for b.Loop() {
		if _, _, ok := w.place(r, demand{1000, 250}); !ok {
			b.Fatal("does not fit")
		}
	}
}
