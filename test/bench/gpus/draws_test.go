//go:build linux

package gpus

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/test/internal/fgd"
	"github.com/pmk-sched/pmk-sched/test/internal/gputable"
	"github.com/pmk-sched/pmk-sched/test/internal/trace"
)

// from and to are the requested GPUs, in percent of the cluster's GPUs, between which the allocated
// GPUs are reported.
const from, to = 80, 130

// seeds returns the numbers in the environment variable SEEDS, or the seeds of the authors' runs if
// it is not set.
func seeds(b *testing.B) (all []int64) {
	b.Helper()
	given := os.Getenv("SEEDS")
	if given == "" {
		return gputable.Seeds()
	}
	for _, text := range strings.Fields(given) {
		seed, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			b.Fatalf("invalid SEEDS: %v", err)
		}
		all = append(all, seed)
	}
	return all
}

// sample returns every nth node, and n: the environment variable EVERY, or the given number if it
// is not set.
func sample(b *testing.B, nodes []*corev1.Node, otherwise int) (some []*corev1.Node, every int) {
	b.Helper()
	every, err := strconv.Atoi(cmp.Or(os.Getenv("EVERY"), fmt.Sprint(otherwise)))
	if err != nil || every < 1 {
		b.Fatalf("invalid EVERY %q: must be a positive number", os.Getenv("EVERY"))
	}
	for i := 0; i < len(nodes); i += every {
		some = append(some, nodes[i])
	}
	return some, every
}

// draw is a run of the authors' simulator without its policy.
type draw struct {
	// nodes are in the order of their names.
	nodes []*corev1.Node
	gpus  int
	// pods arrive in this order.
	pods []*corev1.Pod
	list []fgd.Demand
}

// newDraw draws pods from a list, and gives the nodes the names of the draw.
func newDraw(list []*corev1.Pod, nodes []*corev1.Node, seed int64) draw {
	d := draw{nodes: make([]*corev1.Node, len(nodes))}
	for _, pod := range list {
		d.list = append(d.list, demandOf(pod))
	}
	for _, n := range nodes {
		d.gpus += int(n.Status.Allocatable.Name(trace.GPU, "").Value() / trace.Whole)
	}
	drawn := fgd.NewDraw(d.list, len(nodes), d.gpus, seed)
	for _, i := range drawn.Pods {
		d.pods = append(d.pods, list[i])
	}
	for i, rank := range drawn.Ranks {
		node := nodes[i].DeepCopy()
		node.Name = fmt.Sprintf("%04d-%s", rank, node.Name)
		node.Labels[corev1.LabelHostname] = node.Name
		d.nodes[rank] = node
	}
	return d
}

// upTo returns the draw with the first pods, until they request more than a percentage of the
// cluster's GPUs.
func (d draw) upTo(percent int64) draw {
	asked := int64(0)
	for i, pod := range d.pods {
		if asked += trace.Request(pod); 100*asked > percent*int64(d.gpus)*trace.Whole {
			d.pods = d.pods[:i]
			break
		}
	}
	return d
}

// allocated returns the allocated GPUs in percent of the cluster's GPUs, at each percentage of
// requested GPUs between from and to.
func (d draw) allocated(placed []bool) []float64 {
	var pods []fgd.Demand
	for _, pod := range d.pods {
		pods = append(pods, demandOf(pod))
	}
	return fgd.Allocated(pods, placed, d.gpus, from, to)
}
