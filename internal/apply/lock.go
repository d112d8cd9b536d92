package apply

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/clock"
	"github.com/pmk-sched/pmk-sched/internal/ownership"
)

const (
	// lockDuration is how long a lock is valid after its last renewal, unless [Options] says otherwise.
	lockDuration = 15 * time.Second
	// A lock is renewed lockRenewals times, and looked at lockLooks times, within that duration.
	lockRenewals = 5
	lockLooks    = 15
	// lockAncient is how many durations old a lock is when it is stale whatever the clocks of two machines say.
	lockAncient = 10
	// holderSeparator stands between who holds a lock and a part that makes two runs of the same person differ.
	holderSeparator = "#"
)

// LockName is the name of the Lease that keeps two runs for the same scheduler apart.
func LockName(name string) string { return "pmk-sched-" + name }

// Lock takes the lock of scheduler name, a Lease in namespace ns, for holder (who, where, which process: people read it), and renews it
// until unlock is called, once, or ctx ends.
//
// A lock that another holds and renews is a [*LockedError] after about one renewal (3 s). One that is not renewed for 15 s by this machine's
// clock belonged to a run that was killed, and is taken over. unlock deletes the Lease; give it a context that is still
// alive. It returns a [*LostLockError] if the lock was taken over meanwhile, because this run could not renew it.
func (c *Client) Lock(ctx context.Context, ns, name, holder string) (unlock func(context.Context) error, err error) {
	l := &lock{
		client: c, name: name, key: client.ObjectKey{Namespace: ns, Name: LockName(name)},
		holder: strings.ReplaceAll(holder, holderSeparator, " ") + holderSeparator + rand.Text()[:8],
	}
	if err := l.acquire(ctx); err != nil {
		return nil, err
	}
	renewCtx, stop := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		l.renewUntil(renewCtx)
	}()
	return func(ctx context.Context) error {
		stop()
		<-stopped
		return l.release(ctx)
	}, nil
}

type lock struct {
	client *Client
	name   string
	key    client.ObjectKey
	holder string
}

// acquire returns when the Lease is ours. A foreign one is watched until it moves (held) or has not moved for lockDuration (stale).
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
			outages, since = now, time.Now() // nobody could renew while the API server was away
		}
		if free(lease) || time.Since(since) >= l.client.locks || renewalAge(lease) >= lockAncient*l.client.locks {
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

// create makes the Lease; if there is one already, and it is not ours, it is returned.
func (l *lock) create(ctx context.Context) (*coordinationv1.Lease, error) {
	mine := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: l.key.Namespace, Name: l.key.Name, Labels: ownership.Labels(l.name),
	}}
	l.claim(mine)
	err := l.client.api.Create(ctx, mine)
	if !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	lease := &coordinationv1.Lease{}
	if err := l.client.api.Get(ctx, l.key, lease); err != nil {
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

// take overwrites a Lease that nobody holds any more; false means that somebody else was quicker.
func (l *lock) take(ctx context.Context, lease *coordinationv1.Lease) (bool, error) {
	if lease.ResourceVersion == "" {
		return false, nil
	}
	before := holderOf(lease)
	l.claim(lease)
	err := l.client.api.Update(ctx, lease)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	if err == nil && before != "" {
		l.client.log.Warn("took over the lock of a run that has ended without giving it back", zap.String("scheduler", l.name), zap.String("holder", before))
	}
	return err == nil, err
}

// claim writes us into a Lease as its holder from now on.
func (l *lock) claim(lease *coordinationv1.Lease) {
	now := metav1.NowMicro()
	seconds := max(1, int32(l.client.locks/time.Second))
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &l.holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now}
}

func (l *lock) holds(lease *coordinationv1.Lease) bool {
	return lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity == l.holder
}

// renewUntil renews the Lease until ctx ends or another holds it.
func (l *lock) renewUntil(ctx context.Context) {
	ticker := time.NewTicker(l.client.locks / lockRenewals)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := l.renew(ctx)
		var lost *LostLockError
		switch {
		case errors.As(err, &lost):
			l.client.log.Warn("the lock is lost", zap.Error(err))
			return
		case err != nil && ctx.Err() == nil:
			l.client.log.Warn("the lock could not be renewed", zap.String("scheduler", l.name), zap.Error(err))
		}
	}
}

func (l *lock) renew(ctx context.Context) error {
	lease, err := l.current(ctx)
	if err != nil {
		return err
	}
	now := metav1.NowMicro()
	lease.Spec.RenewTime = &now
	return l.client.api.Update(ctx, lease)
}

// current returns the Lease as long as we hold it.
func (l *lock) current(ctx context.Context) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	err := l.client.api.Get(ctx, l.key, lease)
	switch {
	case apierrors.IsNotFound(err):
		return nil, &LostLockError{Name: l.name}
	case err != nil:
		return nil, err
	case !l.holds(lease):
		return nil, &LostLockError{Name: l.name, Holder: holderOf(lease)}
	}
	return lease, nil
}

func (l *lock) release(ctx context.Context) error {
	lease, err := l.current(ctx)
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(l.client.api.Delete(ctx, lease, unchangedSince(lease)))
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

// renewalAge is how long ago a Lease was renewed, by this machine's clock; another machine's clock wrote the time.
func renewalAge(lease *coordinationv1.Lease) time.Duration {
	if lease.Spec.RenewTime == nil {
		return math.MaxInt64
	}
	return time.Since(lease.Spec.RenewTime.Time)
}

// holderOf is who holds a Lease, in words for people.
func holderOf(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	who, _, _ := strings.Cut(*lease.Spec.HolderIdentity, holderSeparator)
	return who
}

// unchangedSince makes a deletion fail when obj was written since it was read.
func unchangedSince(obj client.Object) client.Preconditions {
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	return client.Preconditions{UID: &uid, ResourceVersion: &version}
}
