package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
)

// A change that was refused, or whose index could not be read, is not deployed because its
// generation was observed.
func TestATargetIsDueUntilItIsDeployedAndVerified(t *testing.T) {
	wanted := &target{SchedulerRelease: &v1alpha1.SchedulerRelease{Image: "s:v1"}, checksum: "1", server: "v1.29.3"}
	stalledFor := func(reason string) func(*run) {
		return func(u *run) { u.set(v1alpha1.ConditionStalled, metav1.ConditionTrue, reason, "") }
	}
	for name, c := range map[string]struct {
		change func(*run)
		due    bool
	}{
		"deployed":                     {func(*run) {}, false},
		"never deployed":               {func(u *run) { u.object.Status.Release = nil }, true},
		"another image":                {func(u *run) { u.object.Status.Release.Image = "s:v0" }, true},
		"another release of the index": {func(u *run) { u.object.Status.Release.Checksum = "0" }, true},
		"another generation":           {func(u *run) { u.object.Status.ObservedGeneration = 1 }, true},
		"not verified": {func(u *run) {
			u.set(v1alpha1.ConditionVerified, metav1.ConditionFalse, "DeployFailed", "")
		}, true},
		"invalid":             {stalledFor("InvalidSpec"), true},
		"unreadable releases": {stalledFor("ReleasesUnreadable"), true},
		"too many repairs":    {stalledFor(repairedTooOften), false},
		"no longer stalled": {func(u *run) {
			u.set(v1alpha1.ConditionStalled, metav1.ConditionFalse, "InvalidSpec", "")
		}, false},
	} {
		u := newDeployedRun(wanted)
		u.object.Status.Release.Server = "v1.29.1"
		c.change(u)
		u.compared.Store(client.ObjectKeyFromObject(u.object), time.Now())
		if got, err := u.isDue(t.Context(), wanted, nil); got != c.due || err != nil {
			t.Errorf("%s: due is %t, %v", name, got, err)
		}
		if release := u.object.Status.Release; !c.due && release.Server != "v1.29.3" {
			t.Errorf("%s: the status has the server %s", name, release.Server)
		}
	}
}

// The objects are compared when they change, after the interval, and again if that failed.
func TestDriftIsRepaired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wanted := &target{SchedulerRelease: &v1alpha1.SchedulerRelease{Image: "s:v1"}}
		u := newDeployedRun(wanted)
		u.session.Log = zap.NewNop()
		unreadable := errors.New("no answer")
		isDue := func(drift string, failed error) (due, compared bool, err error) {
			due, err = u.isDue(t.Context(), wanted, func(context.Context) (string, error) {
				compared = true
				return drift, failed
			})
			return due, compared, err
		}
		const unchanged, changed = "Drifted=False Unchanged", "Drifted=True Changed"
		for _, step := range []struct {
			name, drift   string
			failed        error
			after         time.Duration
			due, compared bool
			condition     string
		}{
			{name: "a comparison that fails", failed: unreadable, compared: true, condition: unchanged},
			{name: "it is repeated", compared: true, condition: unchanged},
			{name: "shortly after", after: time.Hour - time.Second, drift: "not read", condition: unchanged},
			{name: "after the interval", after: time.Second, drift: "spec.replicas", due: true, compared: true,
				condition: changed},
			{name: "after the repair", after: time.Hour, compared: true, condition: unchanged},
		} {
			time.Sleep(step.after)
			due, compared, err := isDue(step.drift, step.failed)
			if due != step.due || compared != step.compared || !errors.Is(err, step.failed) ||
				!strings.Contains(u.conditions(t), step.condition) {
				t.Errorf("%s: due %t, compared %t, %v, %s", step.name, due, compared, err, u.conditions(t))
			}
		}
		if got := u.message(v1alpha1.ConditionDrifted); got != "the objects are as deployed" {
			t.Errorf("Drifted has the message %q", got)
		}
		for range freeRepairs {
			u.forget()
			if due, _, err := isDue("spec.replicas", nil); !due && err == nil {
				t.Fatal("drift is not due")
			}
		}
		for range 2 { // a repair that waits does not count as a comparison
			due, compared, err := isDue("spec.replicas", nil)
			var waits *stalled
			if due || !compared || !errors.As(err, &waits) || waits.reason != repairedTooOften {
				t.Errorf("too many repairs: due %t, compared %t, %v", due, compared, err)
			}
		}
		if got := u.message(v1alpha1.ConditionDrifted); got != "spec.replicas" {
			t.Errorf("Drifted has the message %q", got)
		}
	})
}

func TestTargetWaitsAfterAFailedDeployment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newRun()
		u.session.Log, u.servers = zap.NewNop(), Servers{"v1.29.3", "v1.29.3"}
		index := &v1alpha1.SchedulerReleases{Releases: []v1alpha1.SchedulerRelease{
			{Minor: "1.29", Release: "v1.29.1", Image: "s:v1"}}}
		first, err := u.targetOf(index)
		if err != nil || first.Image != "s:v1" || first.server != "v1.29.3" {
			t.Fatalf("got %+v, %v", first, err)
		}
		failed := u.fail(first, errors.New("no pod is ready"))
		time.Sleep(minBackoff - time.Nanosecond)
		if got, err := u.targetOf(index); got != nil || !errors.Is(err, failed) {
			t.Errorf("before the next attempt: got %+v, %v", got, err)
		}
		u.session.Bounds = session.Bounds{Repositories: []string{"s"}}
		if got, err := u.targetOf(index); got == nil || err != nil || got.isDeployed(first.status()) {
			t.Errorf("with other bounds: got %+v, %v", got, err)
		}
		u.session.Bounds = session.Bounds{}
		time.Sleep(time.Nanosecond)
		if got, err := u.targetOf(index); got == nil || err != nil {
			t.Errorf("at the time of the next attempt: got %+v, %v", got, err)
		}

		u.servers = Servers{"v1.30.1", "v1.30.1"}
		if got, err := u.targetOf(index); got != nil || err != nil ||
			!strings.Contains(u.conditions(t), "ReleaseMatched=False NoImageForRelease") {
			t.Errorf("without a release: got %+v, %v, %s", got, err, u.conditions(t))
		}
		u.servers = Servers{"34x", "34x"}
		var unreadable *stalled
		if _, err := u.targetOf(index); !errors.As(err, &unreadable) || unreadable.reason != "ReleasesUnreadable" {
			t.Errorf("a server of an unknown version: %v", err)
		}
	})
}

// Neither the cluster nor a registry is asked for what cannot be deployed.
func TestObjectsThatCannotBeDeployedStall(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0", 64)
	for name, c := range map[string]struct {
		change func(*v1alpha1.CustomSchedulerSpec)
		reason string
		next   time.Duration
	}{
		"invalid": {func(s *v1alpha1.CustomSchedulerSpec) { s.Source.Branch = "" }, "InvalidSpec", 0},
		"an index of another registry": {func(s *v1alpha1.CustomSchedulerSpec) {
			s.Releases = &v1alpha1.Releases{OCI: "elsewhere.example.com/x" + digest}
		}, imageRefused, time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			u := newRun()
			u.session.Log = zap.NewNop()
			u.reconciler.session.Bounds = session.Bounds{Repositories: []string{"registry.example.com"}}
			u.object.Spec.Image.Reference, u.object.Spec.Source.Branch = "s:v1", "v1.29.1"
			c.change(&u.object.Spec)
			var needsUser *stalled
			if err := u.deployIfNeeded(t.Context()); !errors.As(err, &needsUser) || needsUser.reason != c.reason {
				t.Fatalf("%s: got %v", name, err)
			}
			if next := needsUser.next; next.IsZero() != (c.next == 0) || c.next > 0 && time.Until(next) != c.next {
				t.Errorf("%s: the next attempt is at %s", name, next)
			}
		})
	}
}
