package staticpod

import (
	"time"
)

// election follows the lease from one holder to the next.
type election struct {
	former         string
	lastFormer     time.Time
	acquired       time.Time
	successor      string
	stoppedBetween bool
}

func (e *election) begin(before *Seen) {
	e.former = before.Holder
	e.observe(before)
}

func (e *election) observe(seen *Seen) {
	if seen.lease == nil || e.successor != "" {
		return
	}
	spec := seen.lease.Spec
	switch seen.Holder {
	case e.former, "":
		// A scheduler that exits releases the lease and records the time.
		if spec.RenewTime != nil && !e.stoppedBetween {
			e.lastFormer = spec.RenewTime.Time
		}
		e.stoppedBetween = e.stoppedBetween || seen.Holder == ""
	default:
		e.successor = seen.Holder
		if spec.AcquireTime != nil {
			e.acquired = spec.AcquireTime.Time
		}
	}
}

func (e *election) without() time.Duration {
	if e.successor == "" || e.lastFormer.IsZero() || e.acquired.Before(e.lastFormer) {
		return 0
	}
	return e.acquired.Sub(e.lastFormer)
}
