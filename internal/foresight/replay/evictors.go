package replay

import (
	"context"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
)

// mostEventDelay bounds the wait for events, which the scheduler writes some time after it evicts.
const mostEventDelay = 5 * time.Second

// nameEvictors adds the pods for which others were evicted.
func (d *replayer) nameEvictors(ctx context.Context) error {
	if len(d.result.Evicted) == 0 {
		return nil
	}
	for began := time.Now(); ; {
		by, err := d.r.Evictors(ctx)
		if err != nil {
			return err
		}
		if d.nameEvictorsFrom(by) || time.Since(began) > mostEventDelay {
			return nil
		}
		if err := clock.Sleep(ctx, kubescheduler.PollInterval); err != nil {
			return err
		}
	}
}

// nameEvictorsFrom is nameEvictors with the events so far. It reports whether no event is missing.
func (d *replayer) nameEvictorsFrom(by map[string]string) bool {
	all := true
	for i := range d.result.Evicted {
		e := &d.result.Evicted[i]
		e.By = by[e.Namespace+"/"+e.Name]
		all = all && e.By != ""
	}
	return all
}
