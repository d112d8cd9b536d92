package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/foresight/shadow"
)

func TestShadowTable(t *testing.T) {
	r := &shadow.Report{
		Release: "v1.24.3", Scheduler: "packer", Observed: "default-scheduler", Seconds: 600.2, Same: 7, Missed: 1,
		Differences: []shadow.Difference{
			{Namespace: "shop", Name: "web-1", Node: "b", Observed: "a"}, {Namespace: "shop", Name: "web-2", Observed: "a",
				Reason: "0/2 nodes are available"},
		},
		Noise: []shadow.Difference{{Name: "tied"}}, Undecided: []shadow.Difference{{Name: "late"}},
		Notes:     []string{"read /api/v1/nodes for the shadow: no permission"},
		Evictions: []shadow.Eviction{{Namespace: "batch", Name: "low", For: "shop/web-2"}},
	}
	const want = `packer v1.24.3 compared with default-scheduler for 10m0s
pods: 7 same, 2 different, 1 tied
pods not compared: 1 without a decision by the shadow, 1 that were bound without an event
note: read /api/v1/nodes for the shadow: no permission

DIFFERENT POD	NODE	NODE OF default-scheduler	REASON
shop/web-1	b	a	-
shop/web-2	-	a	0/2 nodes are available

WOULD EVICT	FOR
batch/low	shop/web-2
`
	if diff := cmp.Diff(want, shadowTable(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
