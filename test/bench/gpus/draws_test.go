//go:build linux

package gpus

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/test/internal/samples"
	"github.com/pmk-sched/pmk-sched/test/internal/trace"
)

const (
	// draws is how often pods are drawn from each workload.
	draws = 10
	// from and to are the requested GPUs, in percent of the cluster's GPUs, between which the
	// allocated GPUs are recorded.
	from, to = 80, 130
)

// seeds returns the numbers in the environment variable SEEDS, with which pods are drawn, or the
// numbers from 1 on if it is not set.
func seeds(b *testing.B) (all []uint64) {
	b.Helper()
	given := os.Getenv("SEEDS")
	if given == "" {
		for seed := range draws {
			all = append(all, uint64(seed)+1)
		}
		return all
	}
	for _, text := range strings.Fields(given) {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			b.Fatalf("invalid SEEDS: %v", err)
		}
		all = append(all, seed)
	}
	return all
}

// sample returns every nth node: n is the environment variable EVERY, or the given number if it is
// not set.
func sample(b *testing.B, nodes []*corev1.Node, otherwise int) (some []*corev1.Node) {
	b.Helper()
	every, err := strconv.Atoi(cmp.Or(os.Getenv("EVERY"), fmt.Sprint(otherwise)))
	if err != nil || every < 1 {
		b.Fatalf("invalid EVERY %q: must be a positive number", os.Getenv("EVERY"))
	}
	for i := 0; i < len(nodes); i += every {
		some = append(some, nodes[i])
	}
	return some
}

// draw draws pods until they ask for enough GPUs, and returns them with the GPUs that the nodes
// have, in thousandths.
func draw(pods []*corev1.Pod, nodes []*corev1.Node, seed uint64) (drawn []*corev1.Pod, capacity int64) {
	for _, n := range nodes {
		capacity += n.Status.Allocatable.Name(trace.GPU, "").Value()
	}
	random := rand.New(rand.NewPCG(seed, 0))
	for asked := int64(0); 100*asked < to*capacity; {
		pod := pods[random.IntN(len(pods))]
		asked += trace.Request(pod)
		drawn = append(drawn, pod)
	}
	return drawn, capacity
}

// allocation returns the allocated GPUs in percent of the cluster's GPUs, at each percentage of
// requested GPUs between from and to.
func allocation(drawn []*corev1.Pod, placed []bool, capacity int64) (allocated []float64) {
	asked, sum := int64(0), int64(0)
	for i, pod := range drawn {
		asked += trace.Request(pod)
		if placed[i] {
			sum += trace.Request(pod)
		}
		for 100*asked >= int64(from+len(allocated))*capacity && len(allocated) <= to-from {
			allocated = append(allocated, 100*float64(sum)/float64(capacity))
		}
	}
	return allocated
}

// askedFor are the percentages of requested GPUs at which the allocated GPUs are reported.
var askedFor = []int{95, 100, 105, 130}

// tables have the allocated GPUs of each policy, by workload, for each percentage of askedFor.
type tables map[int]*samples.Table

func newTables() tables {
	t := tables{}
	for _, percent := range askedFor {
		t[percent] = &samples.Table{}
	}
	return t
}

// add adds what allocation returns for one draw.
func (t tables) add(policy, workload string, allocated []float64) {
	for percent, table := range t {
		table.Add(policy, workload, allocated[percent-from])
	}
}

// report reports the mean over all draws, the least and the most.
func (t tables) report(b *testing.B, policy, workload string) {
	b.Helper()
	for _, percent := range askedFor {
		t[percent].Of(policy, workload).ReportMean(b, policy, fmt.Sprintf("%%-of-%d", percent))
	}
}

// checkAbove fails unless the plugin allocates so many percentage points more than other sides, at
// 100 % asked for, in the workloads that were measured.
func (t tables) checkAbove(b *testing.B, claim samples.Claimed, points float64, workloads, others []string) {
	b.Helper()
	for _, workload := range workloads {
		own := t[100].Of("gpupacking", workload)
		for _, other := range others {
			if set := t[100].Of(other, workload); len(own) > 0 && len(set) == len(own) {
				claim.AtLeast(b, workload+": percentage points above "+other, own.Mean()-set.Mean(), points)
			}
		}
	}
}

// allWorkloads returns the names of the workloads.
func allWorkloads() (names []string) {
	for _, w := range trace.Workloads() {
		names = append(names, w.Name)
	}
	return names
}

// log writes the tables of the documentation.
func (t tables) log(b *testing.B) {
	b.Helper()
	for _, percent := range askedFor {
		b.Log(t[percent].MarkdownMean(fmt.Sprintf("%d %% asked for", percent),
			func(percent float64) string { return fmt.Sprintf("%.1f", percent) }))
	}
}
