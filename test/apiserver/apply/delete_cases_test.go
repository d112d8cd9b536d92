//go:build linux && cases

package apply_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
)

func TestDeleteThatDoesNotEndTellsWhatHoldsIt(t *testing.T) {
	t.Parallel()
	client, ns := newClient(t, server.Config()), server.Namespace(t)
	objs := objects(t, "held", ns, "a")
	if _, err := client.Apply(testContext(t), objs); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(testContext(t), 6*time.Second)
	defer cancel()
	_, err := client.Delete(ctx, objs)
	want := "wait until Deployment/" + ns + "/held is gone (finalizers [foregroundDeletion])"
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v does not hold %q", err, want)
	}
}

func TestLeaderLeaseIsDeletedUnlessSomebodyRenewsIt(t *testing.T) {
	t.Parallel()
	ctx, client, ns := testContext(t), newClient(t, server.Config()), server.Namespace(t)
	leases := server.Client(t).CoordinationV1().Leases(ns)
	// as is the clock of its node
	behind := func() metav1.MicroTime { return metav1.NewMicroTime(time.Now().Add(-time.Hour)) }
	holder, now := "master_1234", behind()
	lease, err := leases.Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "led"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	renewing, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		var err error
		for err == nil && clock.Sleep(renewing, 200*time.Millisecond) == nil {
			now := behind()
			lease.Spec.RenewTime = &now
			lease, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		}
		done <- err
	}()
	deletes := func(want string) {
		t.Helper()
		change, err := client.DeleteLeaderLease(ctx, ns, "led")
		if got := (apply.ChangeSet{change}).String(); err != nil || got != "Lease/"+ns+"/led"+want {
			t.Errorf("got %q, want %q: %v", got, want, err)
		}
	}
	deletes(" skipped (still renewed by master_1234)\n")
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	deletes(" deleted\n")
	deletes(" absent\n")
}
