package apply

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

const (
	// lockDuration is a lock's default validity after its last renewal.
	lockDuration = 15 * time.Second
	// A lock is renewed lockRenewals times and polled lockLooks times within that duration.
	lockRenewals = 5
	lockLooks    = 15
	// holderSeparator separates the lock's holder from a random part that distinguishes two runs by
	// the same user.
	holderSeparator = "#"
)

// LockName returns the name of the Lease that prevents two runs for the same scheduler at once.
func LockName(name string) string { return "pmk-sched-" + name }

// Lock acquires the lock for scheduler name, a Lease in namespace ns, for holder (user, machine and
// process, for messages), and renews it until unlock is called or ctx ends. held is ctx, but it
// also ends, with a [*LostLockError] as its cause, when another run has taken over the lock because
// this run could not renew it: then nothing may be changed any more.
//
// It returns a [*LockedError] if another run holds the lock and renews it, after about one renewal
// (3 s). A lock that does not change for 15 s while this run looks at it was left by a run that was
// killed, and is taken over. The times in the Lease are not compared with this machine's clock,
// which may differ from the holder's. unlock deletes the Lease. Call it once, with a context that
// has not ended. It returns the [*LostLockError] if the lock is lost.
func (c *Client) Lock(ctx context.Context, ns, name,
	holder string) (held context.Context, unlock func(context.Context) error, err error) {
	l := &lock{
		client: c, name: name, key: client.ObjectKey{Namespace: ns, Name: LockName(name)},
		holder: strings.ReplaceAll(holder, holderSeparator, " ") + holderSeparator + rand.Text()[:8],
	}
	if err := l.acquire(ctx); err != nil {
		return nil, nil, err
	}
	held, end := context.WithCancelCause(ctx)
	l.end = end
	c.held.Store(l, nil)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		end(l.renewUntil(held))
	}()
	return held, func(ctx context.Context) error {
		c.held.Delete(l)
		end(nil)
		<-stopped
		var lost *LostLockError
		if errors.As(context.Cause(held), &lost) {
			return lost
		}
		return l.release(ctx)
	}, nil
}

type lock struct {
	client *Client
	name   string
	key    client.ObjectKey
	holder string
	// renewed is when the last request that renewed the lock began.
	renewed atomic.Pointer[clock.Instant]
	// end ends the holder's context.
	end context.CancelCauseFunc
}

// confirmLocks returns a [*LostLockError] if this client has lost a lock. It renews the locks that
// were not renewed for as long as a lock is valid: if only this machine was cut off from the API
// server, or suspended, another run may have taken them.
func (c *Client) confirmLocks(ctx context.Context) (err error) {
	c.held.Range(func(key, _ any) bool {
		l := key.(*lock)
		if l.renewed.Load().Within(c.locks, clock.Now()) {
			return true
		}
		err = retry.RetryOnConflict(retry.DefaultRetry, func() error { return l.renew(ctx, c.direct) })
		if lost := (*LostLockError)(nil); errors.As(err, &lost) {
			l.end(lost)
		}
		return err == nil
	})
	return err
}

// acquire returns when this run holds the Lease. It polls another holder's Lease until it changes
// (locked), or has not changed for a lock's duration.
func (l *lock) acquire(ctx context.Context) error {
	var seen string
	var since time.Time
	outages := l.client.retry.Outages()
	for {
		lease, err := l.create(ctx)
		if err != nil || lease == nil {
			return err
		}
		if state := lease.ResourceVersion; state != seen {
			if seen != "" {
				return l.lockedBy(lease)
			}
			seen, since = state, time.Now()
		}
		if now := l.client.retry.Outages(); now != outages {
			outages, since = now, time.Now() // no run could renew its lock while the API server was unavailable
		}
		if free(lease) || time.Since(since) >= l.client.locks {
			switch taken, err := l.take(ctx, lease); {
			case err != nil || taken:
				return err
			}
			continue
		}
		if err := clock.Sleep(ctx, l.client.locks/lockLooks); err != nil {
			return fmt.Errorf("wait for the lock of scheduler %s, held by %s: %w", l.name, holderOf(lease), err)
		}
	}
}

// create creates the Lease. It returns another holder's existing Lease.
func (l *lock) create(ctx context.Context) (*coordinationv1.Lease, error) {
	mine := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: l.key.Namespace, Name: l.key.Name, Labels: ownership.Labels(l.name),
	}}
	l.claim(mine)
	err := l.client.leases.Create(ctx, mine)
	if !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	lease := &coordinationv1.Lease{}
	if err := l.client.leases.Get(ctx, l.key, lease); err != nil {
		if apierrors.IsNotFound(err) {
			return &coordinationv1.Lease{}, nil
		}
		return nil, err
	}
	if l.holds(lease) {
		return nil, nil
	}
	return lease, nil
}

// take overwrites an expired Lease. It returns false if another run was faster.
func (l *lock) take(ctx context.Context, lease *coordinationv1.Lease) (bool, error) {
	if lease.ResourceVersion == "" {
		return false, nil
	}
	before := holderOf(lease)
	l.claim(lease)
	err := l.client.leases.Update(ctx, lease)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	if err == nil && before != "" {
		l.client.log.Warn("took over the lock of a run that ended without releasing it", zap.String("scheduler", l.name),
			zap.String("holder", before))
	}
	return err == nil, err
}

// claim makes this run the holder of a Lease from now on.
func (l *lock) claim(lease *coordinationv1.Lease) {
	began := clock.Now()
	l.renewed.Store(&began)
	now := metav1.NewMicroTime(began.Wall)
	seconds := max(1, int32(l.client.locks/time.Second))
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &l.holder, LeaseDurationSeconds: &seconds, AcquireTime: &now,
		RenewTime: &now}
}

func (l *lock) holds(lease *coordinationv1.Lease) bool {
	return lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity == l.holder
}

// release deletes the Lease. A renewal that was cancelled may reach the API server after the Lease
// was read: it is then read again.
func (l *lock) release(ctx context.Context) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		lease, err := l.current(ctx, l.client.leases)
		if err != nil {
			return err
		}
		return client.IgnoreNotFound(l.client.leases.Delete(ctx, lease, unchangedSince(lease)))
	})
}

func (l *lock) lockedBy(lease *coordinationv1.Lease) error {
	e := &LockedError{Name: l.name, Lease: l.key.String(), Holder: holderOf(lease)}
	if lease.Spec.AcquireTime != nil {
		e.Since = lease.Spec.AcquireTime.Time
	}
	return e
}

// free reports whether a Lease has no holder.
func free(lease *coordinationv1.Lease) bool {
	return lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == ""
}

// holderOf returns a Lease's holder for messages.
func holderOf(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	who, _, _ := strings.Cut(*lease.Spec.HolderIdentity, holderSeparator)
	return who
}

// unchangedSince makes a deletion fail if obj was written after it was read.
func unchangedSince(obj client.Object) client.Preconditions {
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	return client.Preconditions{UID: &uid, ResourceVersion: &version}
}
