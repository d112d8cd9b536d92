package controller

import (
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/deploy"
)

// Time between two attempts to deploy the same target.
const (
	minBackoff = 5 * time.Second
	maxBackoff = 5 * time.Minute
)

// failure is the last failed deployment of an object. The undo changes the scheduler's objects,
// which wakes the reconciler: the time of the next attempt does not depend on that.
type failure struct {
	generation int64
	checksum   string
	backoff    time.Duration
	err        *stalled
}

// fail records a failed deployment of a target, and returns its error with the time of the next
// attempt.
func (u *run) fail(t *target, err error) *stalled {
	reason := "DeployFailed"
	if errors.As(err, new(*deploy.OwnerError)) {
		reason = "OwnedByOther"
	}
	f := &failure{generation: u.object.Generation, checksum: t.checksum, backoff: minBackoff}
	if last := u.lastFailure(t); last != nil {
		f.backoff = min(2*last.backoff, maxBackoff)
	}
	f.err = &stalled{reason: reason, err: err, next: time.Now().Add(f.backoff)}
	u.failed.Store(client.ObjectKeyFromObject(u.object), f)
	u.session.Log.Error(describe(err))
	return f.err
}

// lastFailure returns the last failed deployment of the target for this generation, or nil.
func (u *run) lastFailure(t *target) *failure {
	found, ok := u.failed.Load(client.ObjectKeyFromObject(u.object))
	if !ok {
		return nil
	}
	f := found.(*failure)
	if f.generation != u.object.Generation || f.checksum != t.checksum {
		return nil
	}
	return f
}

// forget removes the entries of an object.
func (u *run) forget() {
	u.compared.Delete(client.ObjectKeyFromObject(u.object))
	u.failed.Delete(client.ObjectKeyFromObject(u.object))
}
