//go:build linux && cases

package apply_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
)

func TestLockOfAKilledRunIsTakenOver(t *testing.T) {
	t.Parallel()
	ctx, client, ns := testContext(t), newClient(t, server.Config()), server.Namespace(t)
	killed, kill := context.WithCancel(ctx)
	_, unlockKilled, err := client.Lock(killed, ns, "stale", "first")
	if err != nil {
		t.Fatal(err)
	}
	kill()
	_, unlock, err := newClient(t, server.Config()).Lock(ctx, ns, "stale", "second")
	if err != nil {
		t.Fatal(err)
	}
	err = unlockKilled(ctx)
	var lost *apply.LostLockError
	if !errors.As(err, &lost) || lost.Holder != "second" {
		t.Errorf("the error of the first is %v", err)
	}
	if err := unlock(ctx); err != nil {
		t.Error(err)
	}
}

// A machine that was cut off from the API server does not write once more before it notices that
// another run has taken the lock.
func TestARunThatWasCutOffDoesNotWrite(t *testing.T) {
	t.Parallel()
	config, cut, away := server.Config(), atomic.Bool{}, make(chan struct{})
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return apiserver.RoundTrip(func(r *http.Request) (*http.Response, error) {
			if cut.Load() {
				return nil, syscall.ECONNREFUSED
			}
			if strings.Contains(r.URL.Path, "/leases/") { // the next renewal is later than the write
				select {
				case <-away:
					if clock.Sleep(r.Context(), time.Second) != nil {
						return nil, r.Context().Err()
					}
				default:
				}
			}
			return next.RoundTrip(r)
		})
	})
	ctx, client, ns := testContext(t), newClient(t, config), server.Namespace(t)
	held, unlock, err := client.Lock(ctx, ns, "cut", "jane@laptop")
	if err != nil {
		t.Fatal(err)
	}
	cut.Store(true)
	_, unlockOther, err := newClient(t, server.Config()).Lock(ctx, ns, "cut", "john@desktop")
	if err != nil {
		t.Fatal(err)
	}
	close(away)
	cut.Store(false)
	_, err = client.Apply(ctx, objects(t, "cut", ns, "a"))
	var lost *apply.LostLockError
	if !errors.As(err, &lost) || lost.Holder != "john@desktop" {
		t.Errorf("the error is %v", err)
	}
	if err := context.Cause(held); !errors.As(err, &lost) {
		t.Errorf("the cause is %v", err)
	}
	maps, err := server.Client(t).CoreV1().ConfigMaps(ns).List(ctx,
		metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=cut"})
	if err != nil || len(maps.Items) > 0 {
		t.Errorf("written after the lock was lost: %v, %v", maps.Items, err)
	}
	if err := unlockOther(ctx); err != nil {
		t.Error(err)
	}
	if err := unlock(ctx); !errors.As(err, &lost) {
		t.Errorf("unlock returns %v", err)
	}
}
