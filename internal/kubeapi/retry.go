package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pmk-sched/pmk-sched/internal/clock"
)

const (
	// DefaultPatience is how long an API server that was there before may be away.
	DefaultPatience = 2 * time.Minute
	// attemptTimeout ends one request that gets no answer at all, so that a silent server is noticed.
	attemptTimeout = 20 * time.Second
	// settleTime is how long after an outage a refusal is not believed: an API server that has just started refuses
	// what its roles allow until it has read them (kubernetes/kubernetes issue 121635).
	settleTime = 10 * time.Second
	firstPause = 200 * time.Millisecond
	longPause  = 3 * time.Second
)

// errAttemptTimeout marks one request that got no answer, while the whole operation has time left.
var errAttemptTimeout = errors.New("request got no answer")

// Retrier does requests again as long as their errors are [Transient], for up to Patience.
//
// Until one request has been answered, nothing is tried again: an address where no API server is should be told at once.
// The zero value works. It must not be copied after first use.
type Retrier struct {
	Patience time.Duration // 0: [DefaultPatience]
	Log      *zap.Logger   // nil: silent

	reached  atomic.Bool
	outages  atomic.Int64
	lastAway atomic.Int64 // Unix nanoseconds of the last transient error
}

// Outages returns how often the API server was found to be away after it had been reached.
func (r *Retrier) Outages() int64 { return r.outages.Load() }

// Do runs attempt until it succeeds, fails for good, Patience is over, or ctx ends. doing says what is being done, to what object;
// the error that is returned is explained with it, see [Explain]. Each attempt's context ends after 20 s.
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
		if !r.worthAnother(err) {
			return Explain(doing, err)
		}
		switch {
		case lostAt.IsZero():
			lostAt = time.Now()
			r.outages.Add(1)
			r.log().Warn("no good answer from the API server; trying again", zap.String("while", doing), zap.Error(err))
		case time.Since(lostAt) >= patience:
			return Explain(fmt.Sprintf("%s (tried again for %s)", doing, patience), err)
		}
		if clock.Sleep(ctx, pause) != nil {
			return stopped(ctx, doing, err)
		}
		pause = min(pause*2, longPause)
	}
}

// try makes one attempt, and notes whether a server is there.
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

func (r *Retrier) worthAnother(err error) bool {
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

// stopped is the error of an operation whose context ended: the context's own, and what was last heard of the API server
// where that says more.
func stopped(ctx context.Context, doing string, last error) error {
	if errors.Is(ctx.Err(), context.Canceled) || !Transient(last) {
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	}
	return fmt.Errorf("%w: %w", ctx.Err(), Explain(doing, last))
}
