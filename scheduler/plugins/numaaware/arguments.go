package numaaware

import (
	"fmt"
	"time"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Values of Arguments.Strategy.
const (
	// StrategyLeastAllocated prefers the zone with the most free resources.
	StrategyLeastAllocated = "LeastAllocated"
	// StrategyMostAllocated prefers the zone with the least free resources, so that other zones stay
	// free for large pods.
	StrategyMostAllocated = "MostAllocated"
)

// Values of Arguments.Unaligned.
const (
	// UnalignedAccept accepts nodes that do not guarantee one zone.
	UnalignedAccept = "Accept"
	// UnalignedReject rejects them.
	UnalignedReject = "Reject"
)

// Arguments are the plugin's arguments in the configuration.
type Arguments struct {
	// Strategy is which zones are preferred: LeastAllocated (the default) or MostAllocated.
	Strategy string `json:"strategy,omitempty"`
	// Unaligned is the treatment of nodes whose kubelet does not guarantee that a pod gets its
	// resources from one zone, or that have no NodeResourceTopology: Accept (the default) or
	// Reject. Pods that need no alignment are accepted everywhere.
	Unaligned string `json:"unaligned,omitempty"`
	// Settle is the time for which a started pod's resources may be missing in its node's
	// NodeResourceTopology, "2m" by default.
	Settle string `json:"settle,omitempty"`
}

type settings struct {
	Arguments
	settle time.Duration
}

func decode(args scheduler.Arguments) (*settings, error) {
	s := &settings{Arguments: Arguments{Strategy: StrategyLeastAllocated, Unaligned: UnalignedAccept, Settle: "2m"}}
	if err := args.Decode(&s.Arguments); err != nil {
		return nil, err
	}
	if s.Strategy != StrategyLeastAllocated && s.Strategy != StrategyMostAllocated {
		return nil, fmt.Errorf("strategy: %q is neither %s nor %s", s.Strategy, StrategyLeastAllocated, StrategyMostAllocated)
	}
	if s.Unaligned != UnalignedAccept && s.Unaligned != UnalignedReject {
		return nil, fmt.Errorf("unaligned: %q is neither %s nor %s", s.Unaligned, UnalignedAccept, UnalignedReject)
	}
	var err error
	if s.settle, err = time.ParseDuration(s.Settle); err != nil || s.settle < time.Second || s.settle > time.Hour {
		return nil, fmt.Errorf("settle: %q must be a duration between 1s and 1h", s.Settle)
	}
	return s, nil
}
