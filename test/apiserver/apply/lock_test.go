//go:build linux

package apply_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
)

func TestLockIsHeldByOne(t *testing.T) {
	t.Parallel()
	ctx, client, ns := testContext(t), newClient(t, server.Config()), server.Namespace(t)
	_, unlock, err := client.Lock(ctx, ns, "one", "jane@laptop")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = newClient(t, server.Config()).Lock(ctx, ns, "one", "jane@laptop")
	var locked *apply.LockedError
	if !errors.As(err, &locked) || locked.Holder != "jane@laptop" || locked.Since.IsZero() ||
		locked.Lease != ns+"/pmk-sched-one" {
		t.Fatalf("error of the second is %v", err)
	}
	if !strings.HasPrefix(err.Error(), "scheduler one is being changed by jane@laptop since ") || locked.Hint() == "" {
		t.Errorf("error is %q", err)
	}
	_, unlockOther, err := client.Lock(ctx, ns, "other", "jane@laptop")
	if err != nil {
		t.Errorf("the lock of another scheduler: %v", err)
	}
	if err := errors.Join(unlock(ctx), unlockOther(ctx)); err != nil {
		t.Error(err)
	}
	if list, err := server.Client(t).CoordinationV1().Leases(ns).List(ctx, metav1.ListOptions{}); err != nil ||
		len(list.Items) != 0 {
		t.Errorf("leases are left: %v, %v", list, err)
	}
}

// skews are how much the clock of another machine may differ.
var skews = map[string]time.Duration{"behind": -24 * time.Hour, "ahead": 24 * time.Hour}

// createLease creates a Lease of another run whose clock differs.
func createLease(t *testing.T, ns, name string, skew time.Duration) *coordinationv1.Lease {
	t.Helper()
	holder, now := "jane@laptop#1", metav1.NewMicroTime(time.Now().Add(skew))
	lease, err := server.Client(t).CoordinationV1().Leases(ns).Create(testContext(t), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: apply.LockName(name)},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, AcquireTime: &now, RenewTime: &now},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func TestLockThatIsRenewedIsNotTakenWhateverTheClocks(t *testing.T) {
	for name, skew := range skews {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, ns := testContext(t), server.Namespace(t)
			lease := createLease(t, ns, name, skew)
			renewing, stop := context.WithCancel(ctx)
			done := make(chan error)
			go func() {
				for clock.Sleep(renewing, time.Second) == nil {
					now := metav1.NewMicroTime(time.Now().Add(skew))
					lease.Spec.RenewTime = &now
					renewed, err := server.Client(t).CoordinationV1().Leases(ns).Update(ctx, lease, metav1.UpdateOptions{})
					if err != nil {
						done <- err
						return
					}
					lease = renewed
				}
				done <- nil
			}()
			_, _, err := newClient(t, server.Config()).Lock(ctx, ns, name, "john@desktop")
			var locked *apply.LockedError
			if !errors.As(err, &locked) || locked.Holder != "jane@laptop" {
				t.Errorf("error is %v", err)
			}
			stop()
			if err := <-done; err != nil {
				t.Errorf("the other run cannot renew its lock: %v", err)
			}
		})
	}
}

func TestLockThatIsNotRenewedIsTakenWhateverTheClocks(t *testing.T) {
	for name, skew := range skews {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, ns, valid := testContext(t), server.Namespace(t), 2*time.Second
			createLease(t, ns, name, skew)
			client := newClient(t, server.Config(), func(o *apply.Options) { o.LockDuration = valid })
			begin := time.Now()
			_, unlock, err := client.Lock(ctx, ns, name, "john@desktop")
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); took < valid {
				t.Errorf("it was taken after %s, before it was seen not to change for %s", took, valid)
			}
			if err := unlock(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// The context of the run that holds a lock ends when it is lost, with the reason.
func TestLostLockEndsItsContext(t *testing.T) {
	for name, tc := range map[string]struct {
		lose func(t *testing.T, ns, lease string)
		text string
	}{
		"taken": {func(t *testing.T, ns, lease string) {
			other := []byte(`{"spec": {"holderIdentity": "john@desktop#2"}}`)
			if _, err := server.Client(t).CoordinationV1().Leases(ns).Patch(testContext(t), lease, types.MergePatchType, other,
				metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}, "was taken over by john@desktop during the change"},
		"deleted": {func(t *testing.T, ns, lease string) {
			if err := server.Client(t).CoordinationV1().Leases(ns).Delete(testContext(t), lease,
				metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}, "was deleted during the change"},
		"not permitted": {func(t *testing.T, ns, _ string) {
			if err := server.Client(t).RbacV1().RoleBindings(ns).Delete(testContext(t), "leases",
				metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}, "expired during the change: read Lease/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, ns := testContext(t), server.Namespace(t)
			held, unlock, err := newClient(t, leaseUser(t, ns)).Lock(ctx, ns, "lost", "jane@laptop")
			if err != nil {
				t.Fatal(err)
			}
			if held.Err() != nil {
				t.Fatal(held.Err())
			}
			tc.lose(t, ns, apply.LockName("lost"))
			select {
			case <-held.Done():
			case <-ctx.Done():
				t.Fatal("the context of the holder has not ended")
			}
			var lost *apply.LostLockError
			if cause := context.Cause(held); !errors.As(cause, &lost) ||
				!strings.Contains(cause.Error(), "the lock of scheduler lost "+tc.text) {
				t.Errorf("the cause is %v", cause)
			}
			if err := unlock(ctx); !errors.Is(err, lost) {
				t.Errorf("unlock returns %v", err)
			}
		})
	}
}

// A renewal that was cancelled reaches the API server between the last read of the lock and its
// deletion.
func TestLockIsReleasedThoughARenewalArrivesLate(t *testing.T) {
	t.Parallel()
	config, late := server.Config(), atomic.Int32{}
	leases := server.Client(t).CoordinationV1()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return apiserver.RoundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodDelete && late.Add(1) == 1 {
				parts := strings.Split(r.URL.Path, "/") // …/namespaces/NAMESPACE/leases/NAME
				_, err := leases.Leases(parts[len(parts)-3]).Patch(r.Context(), parts[len(parts)-1], types.MergePatchType,
					[]byte(`{"spec": {"renewTime": "2026-01-02T03:04:05.000000Z"}}`), metav1.PatchOptions{})
				if err != nil {
					return nil, err
				}
			}
			return next.RoundTrip(r)
		})
	})
	ctx, client, ns := testContext(t), newClient(t, config), server.Namespace(t)
	_, unlock, err := client.Lock(ctx, ns, "late", "jane@laptop")
	if err != nil {
		t.Fatal(err)
	}
	if err := unlock(ctx); err != nil {
		t.Error(err)
	}
	list, err := leases.Leases(ns).List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) > 0 || late.Load() != 2 {
		t.Errorf("leases %v after %d deletions, %v", list.Items, late.Load(), err)
	}
}

// leaseUser returns the configuration of a user who has permissions for Leases in a namespace by a
// RoleBinding named leases.
func leaseUser(t *testing.T, ns string) *rest.Config {
	t.Helper()
	ctx, kube := testContext(t), server.Client(t).RbacV1()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "leases"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, Verbs: []string{"get", "create",
			"update", "delete"},
	}}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "leases"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role",
			Name: "leases"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: ns}},
	}
	_, roleErr := kube.Roles(ns).Create(ctx, role, metav1.CreateOptions{})
	_, bindingErr := kube.RoleBindings(ns).Create(ctx, binding, metav1.CreateOptions{})
	last := authorizationv1.ResourceAttributes{Verb: "delete", Group: coordinationv1.GroupName, Resource: "leases",
		Namespace: ns}
	if err := errors.Join(roleErr, bindingErr, server.AwaitAccess(ctx, ns, last)); err != nil {
		t.Fatal(err)
	}
	return server.ConfigFor(ns)
}

func TestLockInANamespaceThatIsNotThere(t *testing.T) {
	t.Parallel()
	_, _, err := newClient(t, server.Config()).Lock(testContext(t), "no-such-namespace", "x", "me")
	if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `namespaces "no-such-namespace" not found`) {
		t.Errorf("error is %v", err)
	}
}
