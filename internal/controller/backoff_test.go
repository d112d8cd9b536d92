package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
)

func TestRepairsPauseLongerEachTime(t *testing.T) {
	for count, want := range map[int]time.Duration{
		0: 0, 4: 0, 5: time.Minute, 6: 2 * time.Minute, 9: 16 * time.Minute, 10: 30 * time.Minute, 100: 30 * time.Minute,
	} {
		last := time.Now()
		if got := (repairs{count, last}).next().Sub(last); got != want {
			t.Errorf("after %d repairs: %s, want %s", count, got, want)
		}
	}
}

func TestReasonsOfFailedDeployments(t *testing.T) {
	for want, failure := range map[string]error{
		"DeployFailed": errors.New("no pod is ready"), "OwnedByOther": fmt.Errorf("deploy: %w", &deploy.OwnerError{}),
		imageRefused: fmt.Errorf("deploy: %w", &pack.UnsignedError{}),
	} {
		u := newRun()
		u.session.Log = zap.NewNop()
		var needs *stalled
		if err := u.fail(&target{}, failure); !errors.As(err, &needs) || needs.reason != want || !errors.Is(err, failure) {
			t.Errorf("got %v, %+v, want the reason %s", err, needs, want)
		}
	}
}

// A second controller that changes an object again as soon as it is repaired does not lead to a
// deployment each time.
func TestRepairsOfObjectsThatOthersChangeAgainBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &run{reconciler: &reconciler{}, object: &v1alpha1.CustomScheduler{}}
		u.object.Name = "contested"
		repaired := func(during time.Duration) (count int) {
			for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(15 * time.Second) {
				err := u.beginRepair("Deployment/ns/contested spec.replicas", time.Now())
				if err == nil {
					u.forget() // as a deployment that succeeds
					count++
					continue
				}
				var contested *stalled
				if !errors.As(err, &contested) || !contested.next.After(time.Now()) ||
					!strings.Contains(err.Error(), "it was repaired") {
					t.Fatalf("got %v", err)
				}
			}
			return count
		}
		if first := repaired(time.Minute); first != 4 {
			t.Errorf("%d repairs in the first minute, expected 4: they are made at once", first)
		}
		if next := repaired(time.Hour); next > freeRepairs+3 {
			t.Errorf("%d repairs in the next hour", next)
		}
		if later := repaired(24 * time.Hour); later > 24*int(time.Hour/maxRepairPause) {
			t.Errorf("%d repairs in the next day", later)
		}
		time.Sleep(calmTime + time.Second)
		if again := repaired(time.Minute); again != 4 {
			t.Errorf("%d repairs after a calm time", again)
		}
	})
}

// The time before another attempt doubles from 5 s to 5 minutes, as docs/controller.md says, and
// begins anew when the target or the object changes. Another run that holds the lock is no failure.
func TestFailedDeploymentsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &run{reconciler: &reconciler{o: Options{Resync: time.Hour}}, object: &v1alpha1.CustomScheduler{}}
		u.session.Log = zap.NewNop()
		u.object.Name, u.object.UID = "broken", "a"
		wait := func(wanted *target, failure error) time.Duration {
			t.Helper()
			var needs *stalled
			if err := u.fail(wanted, failure); !errors.As(err, &needs) {
				t.Fatalf("got %v", err)
			}
			return time.Until(needs.next)
		}
		failure, first, second := errors.New("no pod is ready"), &target{checksum: "1"}, &target{checksum: "2"}
		for _, want := range []time.Duration{5, 10, 20, 40, 80, 160, 300, 300} {
			if got := wait(first, failure); got != want*time.Second {
				t.Errorf("the next attempt is in %s, expected %s", got, want*time.Second)
			}
		}
		if got := wait(second, failure); got != minBackoff {
			t.Errorf("of another target: %s", got)
		}
		u.object.Generation++
		if got := wait(second, failure); got != minBackoff {
			t.Errorf("of a changed object: %s", got)
		}
		u.object.UID = "b"
		if got := wait(second, failure); got != minBackoff {
			t.Errorf("of an object that was created again: %s", got)
		}
		u.forget()
		if got := wait(second, failure); got != minBackoff {
			t.Errorf("after a deployment that succeeded: %s", got)
		}
		if got := wait(second, &deploy.RefusedImageError{}); got != time.Hour {
			t.Errorf("of an image that is refused: %s", got)
		}
		if err := u.fail(second, &apply.LockedError{}); errors.As(err, new(*stalled)) {
			t.Errorf("another run that holds the lock: %v", err)
		}
	})
}
