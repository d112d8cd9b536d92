package fgd

import (
	"math"
	"math/rand" // its numbers for a seed are the authors'
)

// tuned is how many GPUs the pods of a draw request, in relation to those of the cluster.
const tuned = 1.3

// Draw is a run of the authors' simulator without its policy. With their lists and the seeds 42 to
// 51 it is a run of their published results.
type Draw struct {
	// Pods are the indices of the pods in the list, in the order of their arrival. A pod may occur
	// more than once.
	Pods []int
	// Ranks are the positions of the nodes in the order of their names, with which the scheduler
	// chooses among nodes with the same score.
	Ranks []int
}

// NewDraw shuffles a list of pods, of which demands are the requests, for nodes that have as many
// GPUs. Pods at random are removed or added until all of them request 130 % of the GPUs. The list
// and the nodes are in the order of their names.
func NewDraw(demands []Demand, nodes, gpus int, seed int64) (d Draw) {
	random := rand.New(rand.NewSource(seed)) //nolint:gosec // a simulation
	_ = random.Int()                         // the simulator logs it
	most, asked := tuned*float64(gpus*whole), int64(0)
	for i, pod := range demands {
		d.Pods = append(d.Pods, i)
		asked += pod.GPU
	}
	random.Shuffle(len(d.Pods), func(i, j int) { d.Pods[i], d.Pods[j] = d.Pods[j], d.Pods[i] })
	if float64(asked) > most {
		for float64(asked) > most {
			i := random.Intn(len(d.Pods))
			asked -= demands[d.Pods[i]].GPU
			d.Pods = append(d.Pods[:i], d.Pods[i+1:]...)
		}
	} else {
		for {
			i := random.Intn(len(demands))
			// Of a pod with several GPUs, the simulator compares one.
			if float64(asked+min(demands[i].GPU, whole)) > most {
				break
			}
			asked += demands[i].GPU
			d.Pods = append(d.Pods, i)
		}
	}
	d.Ranks = random.Perm(nodes)
	return d
}

// Allocated returns the allocated GPUs in percent of the cluster's, at each percentage of requested
// GPUs from one to another. placed reports for each pod, in the order of arrival, whether it has a
// node. As in the authors' results, a value is the mean after all pods with which the requested
// GPUs, rounded, are the percentage.
func Allocated(pods []Demand, placed []bool, gpus, from, to int) []float64 {
	sums, counts := make([]float64, to+1), make([]float64, to+1)
	percent := func(amount int64) float64 { return 100 * float64(amount) / float64(gpus*whole) }
	var asked, allocated int64
	for i, pod := range pods {
		asked += pod.GPU
		if placed[i] {
			allocated += pod.GPU
		}
		if at := int(math.RoundToEven(percent(asked))); at <= to {
			sums[at] += percent(allocated)
			counts[at]++
		}
	}
	// Without a pod at a percentage, the value is the one at the percentage before.
	for at := 1; at <= to; at++ {
		if counts[at] == 0 {
			sums[at], counts[at] = sums[at-1], counts[at-1]
		}
	}
	var values []float64
	for at := from; at <= to; at++ {
		values = append(values, sums[at]/max(counts[at], 1))
	}
	return values
}
