package controller

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
)

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

// A change that was refused, or whose index could not be read, is not deployed because its
// generation was observed.
func TestAnUnfinishedChangeIsDue(t *testing.T) {
	wanted := &target{SchedulerRelease: &v1alpha1.SchedulerRelease{Image: "s:v1"}}
	for reason, due := range map[string]bool{"InvalidSpec": true, "ReleasesUnreadable": true, "": false} {
		u := &run{reconciler: &reconciler{o: Options{Resync: time.Hour}}, object: &v1alpha1.CustomScheduler{}}
		u.object.Generation, u.object.Status.ObservedGeneration = 2, 2
		u.object.Status.Release = wanted.status()
		u.set(v1alpha1.ConditionVerified, metav1.ConditionTrue, "PodBound", "")
		u.compared.Store(client.ObjectKeyFromObject(u.object), time.Now())
		if reason != "" {
			u.set(v1alpha1.ConditionStalled, metav1.ConditionTrue, reason, "")
		}
		if got, err := u.isDue(t.Context(), wanted); got != due || err != nil {
			t.Errorf("stalled with reason %q: due is %t, %v", reason, got, err)
		}
	}
}
