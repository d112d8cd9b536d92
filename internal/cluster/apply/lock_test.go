package apply

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// A lock that was not renewed for as long as it is valid is confirmed with the API server before
// the next change, also if the time of day was set back since.
func TestOverdueLockIsConfirmed(t *testing.T) {
	const valid = 15 * time.Second
	for name, c := range map[string]struct {
		wall, steady time.Duration // since the last renewal
		confirmed    bool
	}{
		"fresh":              {time.Second, time.Second, false},
		"almost overdue":     {valid * 2 / 3, valid * 2 / 3, false},
		"overdue":            {valid + time.Second, valid + time.Second, true},
		"suspended":          {valid + time.Second, time.Second, true},
		"clock was set back": {-time.Hour, time.Minute, true},
	} {
		offline, err := New(restConfig(), Options{LockDuration: valid})
		if err != nil {
			t.Fatal(err)
		}
		ended := false
		l := &lock{client: offline, name: "x", end: func(error) { ended = true }}
		offline.held.Store(l, nil)
		now := clock.Now()
		l.renewed.Store(&clock.Instant{Wall: now.Wall.Add(-c.wall), Steady: now.Steady.Add(-c.steady)})
		// The API server of the client does not answer.
		if err := offline.confirmLocks(context.Background()); (err != nil) != c.confirmed || ended {
			t.Errorf("%s: got %v, ended: %t", name, err, ended)
		}
	}
}

func TestConfirmingALockThatAnotherRunHoldsEndsTheRun(t *testing.T) {
	other := "jane@laptop#1"
	api := &leases{lease: &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &other}}}
	c := &Client{direct: api, locks: time.Minute}
	var cause error
	l := &lock{client: c, name: "x", holder: "john@desktop#2", end: func(err error) { cause = err }}
	c.held.Store(l, nil)
	l.renewed.Store(&clock.Instant{})
	err := c.confirmLocks(t.Context())
	var lost *LostLockError
	if !errors.As(err, &lost) || lost.Holder != "jane@laptop" || !errors.Is(cause, lost) || api.updates > 0 {
		t.Errorf("got %v, the run ended with %v, %d updates", err, cause, api.updates)
	}
	api.lease.Spec.HolderIdentity = &l.holder
	if err := c.confirmLocks(t.Context()); err != nil || api.updates != 1 {
		t.Errorf("its own lock: %v, %d updates", err, api.updates)
	}
	if err := c.confirmLocks(t.Context()); err != nil || api.updates != 1 {
		t.Errorf("its own lock, confirmed before: %v, %d updates", err, api.updates)
	}
}

// leases has one Lease, or an error.
type leases struct {
	client.Client
	lease          *coordinationv1.Lease
	err            error
	reads, updates int
}

func (l *leases) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	l.reads++
	if l.err == nil {
		l.lease.DeepCopyInto(obj.(*coordinationv1.Lease))
	}
	return l.err
}

func (l *leases) Update(context.Context, client.Object, ...client.UpdateOption) error {
	l.updates++
	return l.err
}

func TestLockIsLostWhenItIsNotRenewedForAsLongAsItIsValid(t *testing.T) {
	l := &lock{client: &Client{locks: 15 * time.Second}, name: "x"}
	refused, taken := apierrors.NewBadRequest("no"), &LostLockError{Name: "x", Holder: "jane"}
	unavailable := apierrors.NewInternalError(errors.New("etcd"))
	if !kubeapi.Transient(unavailable) || kubeapi.Transient(refused) {
		t.Fatal("the errors are not what the test needs")
	}
	for name, c := range map[string]struct {
		err       error
		unrenewed time.Duration
		lost      bool
	}{
		"refused a moment ago":  {refused, 15*time.Second - 1, false},
		"refused for too long":  {refused, 15 * time.Second, true},
		"unavailable for hours": {unavailable, time.Hour, false},
		"another run holds it":  {taken, 0, true},
	} {
		err := l.lostBy(c.err, c.unrenewed)
		var lost *LostLockError
		if errors.As(err, &lost) != c.lost || c.lost && !errors.Is(err, c.err) || !c.lost && err != nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestErrorsOfLocksNameTheHolder(t *testing.T) {
	l := &lock{name: "s", key: client.ObjectKey{Namespace: "a", Name: LockName("s")}}
	holder := "jane@laptop#1f"
	lease := &coordinationv1.Lease{}
	if !free(lease) || holderOf(lease) != "" {
		t.Error("a Lease without a holder")
	}
	lease.Spec.HolderIdentity = new(string)
	if !free(lease) {
		t.Error("a Lease with an empty holder")
	}
	lease.Spec.HolderIdentity = &holder
	if l.holder = "jane@laptop#2a"; free(lease) || l.holds(lease) {
		t.Error("another run of the same user")
	}
	for want, err := range map[string]error{
		"scheduler s is being changed by jane@laptop since 0001-01-01T00:00:00Z": l.lockedBy(lease),
		"the lock of scheduler s was taken over by john during the change":       &LostLockError{Name: "s", Holder: "john"},
		"the lock of scheduler s was deleted during the change":                  &LostLockError{Name: "s"},
		"the lock of scheduler s expired during the change: no":                  &LostLockError{Name: "s", Err: errors.New("no")},
	} {
		if err.Error() != want || len(problem.Hints(err)) != 1 {
			t.Errorf("got %v with hints %q, want %s", err, problem.Hints(err), want)
		}
	}
	lease.Spec.AcquireTime = &metav1.MicroTime{Time: start}
	var locked *LockedError
	if err := l.lockedBy(lease); !errors.As(err, &locked) || locked.Lease != "a/pmk-sched-s" ||
		!locked.Since.Equal(start) {
		t.Errorf("got %+v", locked)
	}
}

// The controller manager is idle only if its lease is not renewed during the grace period. With no
// grace, the state of the lease decides at each look.
func TestControllerManagerIsIdleIfItNeitherActsNorRenewsItsLease(t *testing.T) {
	holder := "cm-1"
	for name, c := range map[string]struct {
		grace  time.Duration
		behind []bool
		leases []int // the version of the lease at each look
		idle   []bool
		reads  int
	}{
		"it acts":                 {0, []bool{false, false}, []int{1, 1}, []bool{false, false}, 0},
		"it does nothing":         {0, []bool{true, true}, []int{1, 1}, []bool{false, true}, 2},
		"it renews its lease":     {0, []bool{true, true, true}, []int{1, 2, 3}, []bool{false, false, false}, 3},
		"it stops":                {0, []bool{true, true, true}, []int{1, 2, 2}, []bool{false, false, true}, 3},
		"it acted in between":     {0, []bool{true, false, true}, []int{1, 1, 1}, []bool{false, false, false}, 2},
		"within the grace period": {time.Hour, []bool{true, true}, []int{1, 1}, []bool{false, false}, 1},
	} {
		api := &leases{lease: &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}}
		w := &controllerWatch{client: &Client{api: api, grace: c.grace, retry: &kubeapi.Retrier{}}}
		for i, behind := range c.behind {
			api.lease.ResourceVersion = strconv.Itoa(c.leases[i])
			if reason := w.idle(t.Context(), behind); (reason != "") != c.idle[i] {
				t.Errorf("%s, look %d: got %q", name, i, reason)
			}
		}
		if api.reads != c.reads {
			t.Errorf("%s: the lease was read %d times, want %d", name, api.reads, c.reads)
		}
	}
	// An outage of the API server hides renewals.
	api := &leases{lease: &coordinationv1.Lease{}}
	w := &controllerWatch{client: &Client{api: api, retry: &kubeapi.Retrier{}}, since: start, lease: "", outages: -1}
	if reason := w.idle(t.Context(), true); reason != "" {
		t.Errorf("after an outage: %q", reason)
	}
	if reason := w.idle(t.Context(), true); reason == "" {
		t.Error("after an outage that is long over: not idle")
	}
}
