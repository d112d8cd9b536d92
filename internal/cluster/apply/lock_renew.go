package apply

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// renewUntil renews the Lease until ctx ends. It returns a [*LostLockError] when another run holds
// it, or may take it because the API server has refused to renew it for as long as a lock is valid.
func (l *lock) renewUntil(ctx context.Context) error {
	ticker := time.NewTicker(l.client.locks / lockRenewals)
	defer ticker.Stop()
	renewed := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		begin := time.Now()
		err := l.renew(ctx, l.client.leases)
		switch {
		case err == nil:
			renewed = begin
		case ctx.Err() != nil:
			return nil
		default:
			if lost := l.lostBy(err, time.Since(renewed)); lost != nil {
				return lost
			}
			l.client.log.Warn("failed to renew the lock", zap.String("scheduler", l.name), zap.Error(err))
		}
	}
}

// lostBy returns the error if the lock is lost, given why it could not be renewed and the time
// since its last renewal. While the API server is unavailable, no run can take the lock. If only
// this machine is cut off, confirmLocks notices before the next change.
func (l *lock) lostBy(err error, unrenewed time.Duration) error {
	var lost *LostLockError
	switch {
	case errors.As(err, &lost):
		return lost
	case unrenewed >= l.client.locks && !kubeapi.Transient(err):
		return &LostLockError{Name: l.name, Err: err}
	}
	return nil
}

func (l *lock) renew(ctx context.Context, api client.Client) error {
	began := clock.Now()
	now := metav1.NewMicroTime(began.Wall)
	lease, err := l.current(ctx, api)
	if err != nil {
		return err
	}
	lease.Spec.RenewTime = &now
	if err := api.Update(ctx, lease); err != nil {
		return err
	}
	l.renewed.Store(&began)
	return nil
}

// current returns the Lease if this run still holds it.
func (l *lock) current(ctx context.Context, api client.Client) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	err := api.Get(ctx, l.key, lease)
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
