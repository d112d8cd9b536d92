//go:build linux

package lab

import (
	"net/netip"
	"testing"
	"time"
)

// The node lifecycle controller compares heartbeats in whole seconds: see worker.
func TestWorkersFirstHeartbeatIsOlderThanAnyOfKwok(t *testing.T) {
	before := time.Now()
	for _, c := range worker(1, netip.MustParseAddr("198.18.0.2"), release(t, "v1.24.3")).Status.Conditions {
		if !c.LastHeartbeatTime.Time.Before(before.Truncate(time.Second)) {
			t.Errorf("%s: kwok may write its heartbeat, %s, in the second of %s", c.Type, before, c.LastHeartbeatTime)
		}
	}
}
