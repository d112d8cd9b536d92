//go:build ignore

package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"sort"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// TestRequests compares scheduler.PodRequests with the requests that NodeResourcesFit counts on a
// node. SEED is the seed of the pods, MINOR the minor of the release.
func TestRequests(t *testing.T) {
	minor, err := strconv.Atoi(os.Getenv("MINOR"))
	if err != nil {
		t.Fatal(err)
	}
	if minor == 32 || minor == 33 {
		// The API server clears the fields without this gate.
		if err := utilfeature.DefaultMutableFeatureGate.Set("PodLevelResources=true"); err != nil {
			t.Fatal(err)
		}
	}
	if minor >= 36 {
		if err := utilfeature.DefaultMutableFeatureGate.Set("DRANodeAllocatableResources=true"); err != nil {
			t.Fatal(err)
		}
	}
	seed := time.Now().UnixNano()
	if text := os.Getenv("SEED"); text != "" {
		if seed, err = strconv.ParseInt(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	g := &generator{rand.New(rand.NewSource(seed)), minor}
	different := 0
	for i := 0; i < 2000; i++ {
		text, err := json.Marshal(g.pod(i))
		if err != nil {
			t.Fatal(err)
		}
		pod := &corev1.Pod{}
		if err := json.Unmarshal(text, pod); err != nil { // ignores the fields that the release does not have
			t.Fatal(err)
		}
		want := requestedOn(framework.NewNodeInfo(pod).Requested)
		got := scheduler.PodRequests(pod)
		for name := range namesOf(want, got) {
			single := scheduler.PodRequest(pod, name)
			if name == corev1.ResourcePods {
				single = 1
			}
			if got[name] != want[name] || single != want[name] {
				t.Errorf("SEED=%d: %s: got %d and %d, want %d\n%s", seed, name, got[name], single, want[name], text)
				different++
			}
		}
		if different > 5 {
			t.Fatal("too many differences")
		}
	}
	t.Logf("SEED=%d: 2000 pods are counted alike", seed)
}

func requestedOn(r *framework.Resource) scheduler.Amounts {
	all := scheduler.Amounts{
		corev1.ResourceCPU: r.MilliCPU, corev1.ResourceMemory: r.Memory, corev1.ResourceEphemeralStorage: r.EphemeralStorage,
		corev1.ResourcePods: 1,
	}
	for name, amount := range r.ScalarResources {
		all[name] = amount
	}
	return all
}

func namesOf(a, b scheduler.Amounts) scheduler.Amounts {
	all := a.Clone()
	all.Add(b, 1)
	return all
}

// generator makes pods as JSON, so that one source fits the API of every release.
type generator struct {
	*rand.Rand
	minor int
}

type object map[string]interface{}

func (g *generator) chance(percent int) bool { return g.Intn(100) < percent }

// list returns requests of some of the resources.
func (g *generator) list(names ...string) object {
	list := object{}
	for _, name := range names {
		if !g.chance(60) {
			continue
		}
		switch {
		case name == "cpu":
			list[name] = []string{"0", "1", "100m", "1500m", "0.7", fmt.Sprint(g.Intn(9))}[g.Intn(6)]
		case name == "memory":
			// A fraction of a byte is valid. Values above 2^53 do not fit a float64.
			list[name] = []string{"0", "64Mi", "1500M", "100m", "900m", "9007199254740993", fmt.Sprint(g.Int63n(1 << 40))}[g.Intn(7)]
		default:
			list[name] = fmt.Sprint(g.Intn(8))
		}
	}
	return list
}

func resources() []string {
	return []string{"cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu"}
}

// reported are the resources that a kubelet may report for requests: a resize can add CPU and
// memory.
func reported(requests object) []string {
	names := []string{"cpu", "memory"}
	for name := range requests {
		if name != "cpu" && name != "memory" {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

func (g *generator) containers(prefix string, most int, sidecars bool) (specs, statuses []object) {
	for i := g.Intn(most + 1); i > 0; i-- {
		name := fmt.Sprint(prefix, i)
		requests := g.list(resources()...)
		c := object{"name": name, "resources": object{"requests": requests}}
		if sidecars && g.chance(50) {
			c["restartPolicy"] = "Always"
		}
		specs = append(specs, c)
		if s := (object{"name": name}); g.chance(50) {
			if g.chance(80) {
				s["resources"] = object{"requests": g.list(reported(requests)...)}
			}
			if g.chance(80) {
				s["allocatedResources"] = g.list(reported(requests)...)
			}
			statuses = append(statuses, s)
		}
	}
	return specs, statuses
}

func (g *generator) pod(i int) object {
	spec, status := object{"nodeName": "n"}, object{}
	spec["containers"], status["containerStatuses"] = g.containers("c", 3, false)
	spec["initContainers"], status["initContainerStatuses"] = g.containers("i", 4, true)
	if g.chance(40) {
		spec["overhead"] = g.list("cpu", "memory")
	}
	whole := reported(object{})
	if g.chance(40) {
		if g.minor >= 33 { // 1.32 refuses huge pages
			whole = append(whole, "hugepages-2Mi")
		}
		requests := g.list(whole...)
		spec["resources"] = object{"requests": requests, "limits": g.list(whole...)}
		whole = reported(requests)
	}
	if g.chance(40) {
		status["resources"] = object{"requests": g.list(whole...)}
	}
	if g.chance(40) {
		status["allocatedResources"] = g.list(whole...)
	}
	if g.chance(30) {
		reason := []string{"Infeasible", "Deferred"}[g.Intn(2)]
		status["conditions"] = []object{{"type": "PodResizePending", "status": "True", "reason": reason}}
		status["resize"] = reason
	}
	if g.chance(40) {
		status["nodeAllocatableResourceClaimStatuses"] = g.claims()
	}
	return object{"metadata": object{"name": fmt.Sprint("p", i), "namespace": "default"}, "spec": spec, "status": status}
}

// claims returns the resources that claims use, in the fields of 1.36 and of 1.37. The API server
// of 1.37 refuses a mapping without a quantity, and an overhead without an amount.
func (g *generator) claims() (all []object) {
	for i := g.Intn(3); i >= 0; i-- {
		containers := []string{}
		for j := g.Intn(3); j > 0; j-- {
			containers = append(containers, fmt.Sprint("c", j))
		}
		claim := object{"resourceClaimName": fmt.Sprint("claim", i), "containers": containers,
			"resources": g.list("cpu", "memory", "hugepages-2Mi", "example.com/gpu")}
		var mapping, overhead []object
		for name, amount := range g.list("cpu", "memory", "hugepages-2Mi") {
			mapping = append(mapping, object{"name": name, "quantity": amount})
		}
		for name, amount := range g.list("cpu", "memory", "hugepages-2Mi") {
			o := object{"name": name, "perContainer": amount}
			if again := g.list(name)[name]; again != nil {
				o["perPod"] = again
			}
			overhead = append(overhead, o)
		}
		claim["mapping"], claim["overhead"] = mapping, overhead
		all = append(all, claim)
	}
	return all
}
