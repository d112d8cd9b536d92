package arbiter

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// LeaseName is the name of the lease of the replica that decides.
const LeaseName = ownership.Admission

// Times of the leader election. A killed leader is replaced after leaseTime and retryTime at most,
// and its successor decides after settleTime.
const (
	leaseTime = 6 * time.Second
	renewTime = 4 * time.Second
	retryTime = time.Second
	// settleTime is the time in which the last bindings that a predecessor has admitted become
	// visible. A predecessor that cannot renew its lease stops to decide leaseTime - renewTime before
	// it is replaced.
	settleTime = time.Second
)

// leadership is who decides.
type leadership struct {
	mu      sync.Mutex
	elector *leaderelection.LeaderElector
	// since is when this replica began to lead, or zero.
	since time.Time
}

// leader returns since when this replica leads, or the address of the leader: both are zero if none
// is known.
func (l *leadership) leader() (since time.Time, address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.since.IsZero() || l.elector == nil || l.elector.IsLeader() {
		return l.since, ""
	}
	_, address, _ = strings.Cut(l.elector.GetLeader(), "/")
	return time.Time{}, address
}

// elect takes part in the leader election until ctx ends. address is where others reach this
// replica.
func (l *leadership) elect(ctx context.Context, cfg *rest.Config, namespace, pod, address string,
	log *zap.Logger) error {
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, LeaseName,
		resourcelock.ResourceLockConfig{Identity: pod + "/" + address}, cfg, renewTime)
	if err != nil {
		return fmt.Errorf("elect the arbiter: %w", err)
	}
	for ctx.Err() == nil {
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: leaseTime, RenewDeadline: renewTime, RetryPeriod: retryTime, ReleaseOnCancel: true,
			Name: LeaseName,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					l.mu.Lock()
					defer l.mu.Unlock()
					if ctx.Err() == nil { // OnStoppedLeading may have been first
						l.since = time.Now()
						log.Info("leads: decides about bindings")
					}
				},
				OnStoppedLeading: func() {
					l.mu.Lock()
					defer l.mu.Unlock()
					if !l.since.IsZero() {
						log.Info("does not lead anymore")
					}
					l.since = time.Time{}
				},
			},
		})
		if err != nil {
			return fmt.Errorf("elect the arbiter: %w", err)
		}
		l.mu.Lock()
		l.elector = elector
		l.mu.Unlock()
		elector.Run(ctx)
	}
	return nil
}
