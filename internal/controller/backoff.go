package controller

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
)

// Time between two attempts to deploy the same target.
const (
	minBackoff = 5 * time.Second
	maxBackoff = 5 * time.Minute
)

// failure is an object's last failed deployment. The undo changes the scheduler's objects, which
// wakes the reconciler: the next attempt's time does not depend on that.
type failure struct {
	uid        types.UID
	generation int64
	checksum   string
	backoff    time.Duration
	err        *stalled
}

// fail records a target's failed deployment, and returns its error with the time of the next
// attempt. Another run that holds the lock, for an extender that two objects name, is not a
// failure.
func (u *run) fail(t *target, err error) error {
	if errors.As(err, new(*apply.LockedError)) {
		return err
	}
	reason := "DeployFailed"
	if errors.As(err, new(*deploy.OwnerError)) {
		reason = "OwnedByOther"
	}
	f := &failure{uid: u.object.UID, generation: u.object.Generation, checksum: t.checksum, backoff: minBackoff}
	if last := u.lastFailure(t); last != nil {
		f.backoff = min(2*last.backoff, maxBackoff)
	}
	if isRefused(err) {
		reason, f.backoff = imageRefused, u.o.Resync
	}
	f.err = &stalled{reason: reason, err: err, next: time.Now().Add(f.backoff)}
	u.failed.Store(client.ObjectKeyFromObject(u.object), f)
	u.session.Log.Error(describe(err))
	return f.err
}

// imageRefused is the reason for an image that the required keys did not sign, or from a repository
// that is not allowed. Another attempt helps only if the image is signed in the meantime.
const imageRefused = "ImageRefused"

func isRefused(err error) bool {
	return errors.As(err, new(*deploy.RefusedImageError)) || errors.As(err, new(*pack.UnsignedError))
}

// unreadable returns the error for a release index that could not be read.
func (u *run) unreadable(err error) *stalled {
	if isRefused(err) {
		return &stalled{reason: imageRefused, err: err, next: time.Now().Add(u.o.Resync)}
	}
	return &stalled{reason: "ReleasesUnreadable", err: err}
}

// lastFailure returns the target's last failed deployment for this generation, or nil.
func (u *run) lastFailure(t *target) *failure {
	found, ok := u.failed.Load(client.ObjectKeyFromObject(u.object))
	if !ok {
		return nil
	}
	f := found.(*failure)
	if f.uid != u.object.UID || f.generation != u.object.Generation || f.checksum != t.checksum {
		return nil
	}
	return f
}

// forget removes an object's entries.
func (u *run) forget() {
	u.compared.Delete(client.ObjectKeyFromObject(u.object))
	u.failed.Delete(client.ObjectKeyFromObject(u.object))
}

// Limits on repairs. Others that change the objects again at once, such as a second controller,
// would otherwise lead to a deployment each time, without end.
const (
	// freeRepairs are made at once.
	freeRepairs = 5
	// Time before each further repair: it doubles.
	minRepairPause = time.Minute
	maxRepairPause = 30 * time.Minute
	// calmTime without a repair ends a series of repairs.
	calmTime = 2 * maxRepairPause
)

// repairedTooOften is the reason for the condition Stalled while a repair waits.
const repairedTooOften = "RepairedTooOften"

// repairs is a series of repairs to a scheduler's objects.
type repairs struct {
	count int
	last  time.Time
}

// next returns when the next repair may begin.
func (r repairs) next() time.Time {
	if r.count < freeRepairs {
		return r.last
	}
	return r.last.Add(min(minRepairPause<<min(r.count-freeRepairs, 10), maxRepairPause))
}

// with returns the series with a repair that begins at a time.
func (r repairs) with(now time.Time) repairs {
	if now.Sub(r.last) > calmTime {
		r.count = 0
	}
	return repairs{count: r.count + 1, last: now}
}

// beginRepair returns an error with the time of the next repair if the objects were repaired too
// often. Otherwise it counts a repair.
func (u *run) beginRepair(drift string, now time.Time) error {
	key := client.ObjectKeyFromObject(u.object)
	found, _ := u.repaired.LoadOrStore(key, repairs{})
	series := found.(repairs)
	if next := series.next(); now.Before(next) {
		return &stalled{reason: repairedTooOften, next: next, err: problem.Errorf(
			"find who changes it in its metadata.managedFields, and let only one of both manage it",
			"%s; it was repaired %s, and changed again each time: the next repair is at %s", drift, plural.Count(series.count, "time"),
			next.UTC().Format(time.RFC3339))}
	}
	u.repaired.Store(key, series.with(now))
	return nil
}
