package numaaware

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// fewParts is the number of parts for which a placement allocates nothing: Filter runs for each
// node.
const fewParts = 8

// placement contains the zones for the first parts of a pod.
type placement struct {
	parts []amounts
	// count is the number of placed parts. The zones of the first fewParts are in few, the remaining
	// zones in many.
	count int
	few   [fewParts]int
	many  []int
	// taken is what the parts take from each zone, if there are many: the API server accepts pods
	// with thousands of containers. What few parts take is added as needed.
	taken []amounts
}

// zone returns a part's zone, or noZone.
func (p *placement) zone(i int) int {
	if i < fewParts {
		return p.few[i]
	}
	return p.many[i-fewParts]
}

// add puts the next part into a zone.
func (p *placement) add(z int, zones []zone) {
	p.count++
	if p.count <= fewParts {
		p.few[p.count-1] = z
		return
	}
	p.many = append(p.many, z)
	if p.taken != nil {
		p.take(p.count - 1)
		return
	}
	p.taken = make([]amounts, len(zones))
	for i := 0; i < p.count; i++ {
		p.take(i)
	}
}

// take adds a part to its zone's sums.
func (p *placement) take(i int) {
	z := p.zone(i)
	if z == noZone {
		return
	}
	if p.taken[z] == nil {
		p.taken[z] = amounts{}
	}
	p.taken[z].Add(p.parts[i], 1)
}

// of returns the amount that the parts in a zone take from a resource.
func (p *placement) of(z int, name corev1.ResourceName) (sum int64) {
	if p.taken != nil {
		return p.taken[z][name]
	}
	for i := 0; i < p.count; i++ {
		if p.few[i] == z {
			sum = scheduler.Sum(sum, p.parts[i][name])
		}
	}
	return sum
}
