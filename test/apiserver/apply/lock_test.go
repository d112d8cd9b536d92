//go:build linux

package apply_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/apply"
)

func TestLockIsHeldByOne(t *testing.T) {
	t.Parallel()
	ctx, client, ns := testContext(t), newClient(t, server.Config()), namespace(t)
	unlock, err := client.Lock(ctx, ns, "one", "jane@laptop")
	if err != nil {
		t.Fatal(err)
	}
	_, err = newClient(t, server.Config()).Lock(ctx, ns, "one", "jane@laptop")
	var locked *apply.LockedError
	if !errors.As(err, &locked) || locked.Holder != "jane@laptop" || locked.Since.IsZero() || locked.Lease != ns+"/pmk-sched-one" {
		t.Fatalf("error of the second is %v", err)
	}
	if !strings.HasPrefix(err.Error(), "scheduler one is being changed by jane@laptop since ") || locked.Hint() == "" {
		t.Errorf("error is %q", err)
	}
	unlockOther, err := client.Lock(ctx, ns, "other", "jane@laptop")
	if err != nil {
		t.Errorf("the lock of another scheduler: %v", err)
	}
	if err := errors.Join(unlock(ctx), unlockOther(ctx)); err != nil {
		t.Error(err)
	}
	if list, err := kubeClient(t).CoordinationV1().Leases(ns).List(ctx, metav1.ListOptions{}); err != nil || len(list.Items) != 0 {
		t.Errorf("leases are left: %v, %v", list, err)
	}
}

func TestLockOfAKilledRunIsTakenOver(t *testing.T) {
	t.Parallel()
	ctx, client, ns := testContext(t), newClient(t, server.Config()), namespace(t)
	killed, kill := context.WithCancel(ctx)
	unlockKilled, err := client.Lock(killed, ns, "stale", "first")
	if err != nil {
		t.Fatal(err)
	}
	kill()
	unlock, err := newClient(t, server.Config()).Lock(ctx, ns, "stale", "second")
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

func TestLockThatIsOldByAnyClockIsTakenAtOnce(t *testing.T) {
	t.Parallel()
	ctx, client, ns := testContext(t), newClient(t, server.Config()), namespace(t)
	holder, old := "yesterday#1", metav1.MicroTime{Time: metav1.Now().AddDate(0, 0, -1)}
	_, err := kubeClient(t).CoordinationV1().Leases(ns).Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: apply.LockName("old")},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, AcquireTime: &old, RenewTime: &old},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := client.Lock(ctx, ns, "old", "today")
	if err != nil {
		t.Fatal(err)
	}
	if err := unlock(ctx); err != nil {
		t.Error(err)
	}
}

func TestLockInANamespaceThatIsNotThere(t *testing.T) {
	t.Parallel()
	_, err := newClient(t, server.Config()).Lock(testContext(t), "no-such-namespace", "x", "me")
	if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `namespaces "no-such-namespace" not found`) {
		t.Errorf("error is %v", err)
	}
}
