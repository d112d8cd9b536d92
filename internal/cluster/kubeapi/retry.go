package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
)

const (
	// DefaultPatience is the longest tolerated outage of an API server that was reached before.
	DefaultPatience = 2 * time.Minute
	// attemptTimeout bounds one request, so that a server that does not respond is noticed.
	attemptTimeout = 20 * time.Second
	// settleTime is the time after an outage for which a rejected request is retried: an API server
	// that has just started rejects requests until it has read its roles (kubernetes/kubernetes issue
	// 121635).
	settleTime = 10 * time.Second
	firstPause = 200 * time.Millisecond
	longPause  = 3 * time.Second
)

// errAttemptTimeout marks a request without a response, while the operation has time left.
var errAttemptTimeout = errors.New("no response")

// Retrier retries requests while their errors are [Transient], for up to Patience.
//
// It retries nothing until it has received one response, so that a wrong address is reported
// immediately. The zero value is ready to use. A Retrier must not be copied after first use.
type Retrier struct {
	Patience time.Duration // 0: [DefaultPatience]
	Log      *zap.Logger   // nil: silent

	reached  atomic.Bool
	outages  atomic.Int64
	lastAway atomic.Int64 // Unix nanoseconds of the last transient error
}

// Outages returns how often the API server became unavailable after it had been reached.
func (r *Retrier) Outages() int64 { return r.outages.Load() }

// Do calls attempt until it succeeds, its error is not transient, Patience is over, or ctx ends.
// doing is the operation and its object, for the error, see [Explain]. Each attempt's context ends
// after 20 s.
func (r *Retrier) Do(ctx context.Context, doing string, attempt func(ctx context.Context) error) error {
	patience := r.Patience
	if patience <= 0 {
		patience = DefaultPatience
	}
	var lostAt time.Time
	pause := firstPause
	for {
		err := r.try(ctx, attempt)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return stopped(ctx, doing, err)
		}
		if !r.retryable(err) {
			return Explain(doing, err)
		}
		switch {
		case lostAt.IsZero():
			lostAt = time.Now()
			r.outages.Add(1)
			r.log().Warn("request to the API server failed, retrying", zap.String("while", doing), zap.Error(err))
		case time.Since(lostAt) >= patience:
			return Explain(fmt.Sprintf("%s (retried for %s)", doing, patience), err)
		}
		if clock.Sleep(ctx, pause) != nil {
			return stopped(ctx, doing, err)
		}
		pause = min(pause*2, longPause)
	}
}

// try makes one attempt, and records whether a server responded.
func (r *Retrier) try(ctx context.Context, attempt func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, attemptTimeout, errAttemptTimeout)
	defer cancel()
	err := attempt(ctx)
	var answer apierrors.APIStatus
	if err == nil || errors.As(err, &answer) {
		r.reached.Store(true)
	}
	if err != nil && errors.Is(context.Cause(ctx), errAttemptTimeout) {
		return fmt.Errorf("%w: %w", errAttemptTimeout, err)
	}
	return err
}

func (r *Retrier) retryable(err error) bool {
	if !r.reached.Load() {
		return false
	}
	if Transient(err) {
		r.lastAway.Store(time.Now().UnixNano())
		return true
	}
	refused := apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
	return refused && time.Since(time.Unix(0, r.lastAway.Load())) < settleTime
}

func (r *Retrier) log() *zap.Logger {
	if r.Log == nil {
		return zap.NewNop()
	}
	return r.Log
}

// stopped returns the error for an operation whose context ended: the context's error, with the API
// server's last error if that explains it.
func stopped(ctx context.Context, doing string, last error) error {
	if errors.Is(ctx.Err(), context.Canceled) || !Transient(last) {
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	}
	return fmt.Errorf("%w: %w", ctx.Err(), Explain(doing, last))
}
