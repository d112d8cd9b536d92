package watchdog

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// pulse is the longest time between two renewals of a lease that is held: kube-scheduler gives
// the lead up after 10 seconds without one, and another replica takes it after 15.
const pulse = 20 * time.Second

// leader is what is known about a scheduler's leader. Times are this process's own: the clocks of
// nodes differ.
type leader struct {
	// renewed is the time at which the lease was last seen with a new time of renewal or a new holder,
	// or at which it was first looked at. since is the time from which on it was renewed without a
	// gap, or zero.
	renewed, since time.Time
	last           string
}

// observe records a look at the lease. A nil lease does not exist.
func (l *leader) observe(lease *coordinationv1.Lease, now time.Time) {
	first := l.renewed.IsZero()
	if first {
		l.renewed = now
	}
	state := stateOf(lease)
	changed := state != "" && state != l.last
	l.last = state
	if now.Sub(l.renewed) > pulse {
		l.since = time.Time{}
	}
	if !changed || first {
		return
	}
	l.renewed = now
	if l.since.IsZero() {
		l.since = now
	}
}

// unknown records that the lease could not be read: for that time nothing is known.
func (l *leader) unknown(now time.Time) { *l = leader{renewed: now} }

// stateOf returns what changes when a lease is renewed, or "" if no one holds it.
func stateOf(lease *coordinationv1.Lease) string {
	if lease == nil || lease.Spec.RenewTime == nil {
		return ""
	}
	holder := lease.Spec.HolderIdentity
	if holder == nil || *holder == "" {
		return ""
	}
	return *holder + " " + lease.Spec.RenewTime.UTC().Format(time.RFC3339Nano)
}

// lost reports whether no replica has led for a time.
func (l *leader) lost(after time.Duration, now time.Time) bool { return now.Sub(l.renewed) >= after }

// recovered reports whether a replica has led without a gap for a time.
func (l *leader) recovered(after time.Duration, now time.Time) bool {
	return !l.since.IsZero() && now.Sub(l.renewed) <= pulse && now.Sub(l.since) >= after
}
