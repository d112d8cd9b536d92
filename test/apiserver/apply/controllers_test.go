//go:build linux && cases

package apply_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/base/steps"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
)

// impatient waits 2 s for the controller manager, which these tests do not have.
func impatient(o *apply.Options) { o.ControllerGrace = 2 * time.Second }

// holdControllerLease creates the lease of a controller manager, and renews it until the test ends
// if it is to be alive.
func holdControllerLease(ctx context.Context, t *testing.T, alive bool) {
	t.Helper()
	leases, holder := server.Client(t).CoordinationV1().Leases("kube-system"), "master-1_x"
	lease, err := leases.Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-controller-manager"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-done
		if err := leases.Delete(context.WithoutCancel(ctx), lease.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	go func() {
		defer close(done)
		for alive && ctx.Err() == nil {
			now := metav1.NowMicro()
			lease.Spec.RenewTime = &now
			renewed, err := leases.Update(ctx, lease, metav1.UpdateOptions{})
			if err == nil {
				lease = renewed
			} else if ctx.Err() == nil {
				t.Errorf("renew lease: %v", err)
				return
			}
			time.Sleep(200 * time.Millisecond)
		}
	}()
}

func ownedKinds(ctx context.Context, t *testing.T, client *apply.Client, name, ns string) string {
	t.Helper()
	owned, err := client.Owned(ctx, name, ns)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, o := range owned {
		kinds = append(kinds, o.GetKind())
	}
	return strings.Join(kinds, " ")
}

func TestWaitStableEndsEarlyUnlessTheControllerManagerActs(t *testing.T) {
	for _, c := range []struct {
		name         string
		lease, alive bool
		want         string
	}{
		{"no lease", false, false,
			"failed (ControllersIdle): the controller manager does not act: it has not observed the last change for "},
		{"stale lease", true, false, `its Lease kube-system/kube-controller-manager, held by "master-1_x", was not renewed`},
		{"renewed lease", true, true, "failed (Timeout)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, client, ns := testContext(t), newClient(t, server.Config(), impatient), server.Namespace(t)
			if _, err := client.Apply(ctx, objects(t, "idle", ns, "a")); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if _, err := client.Delete(context.WithoutCancel(ctx), objects(t, "idle", ns, "a")); err != nil && !c.alive {
					t.Error(err)
				}
			})
			if c.lease {
				holdControllerLease(ctx, t, c.alive)
			}
			limited, cancel := context.WithTimeout(ctx, 8*time.Second)
			defer cancel()
			err := client.WaitStable(limited, ns, "idle", apply.WaitOptions{Interval: 100 * time.Millisecond})
			var failed *apply.RolloutError
			if !errors.As(err, &failed) || !strings.Contains(err.Error(), c.want) || failed.Hint() == "" {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestDeleteWithoutAControllerManager(t *testing.T) {
	ctx, client := testContext(t), newClient(t, server.Config(), impatient)
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	t.Run("nothing runs", func(t *testing.T) {
		ns := server.Namespace(t)
		if _, err := client.Apply(ctx, objects(t, "bare", ns, "a")); err != nil {
			t.Fatal(err)
		}
		changes, err := client.Delete(limited, objects(t, "bare", ns, "a"))
		if err != nil || strings.Count(changes.String(), " deleted\n") != 7 {
			t.Errorf("got %v\n%s", err, changes)
		}
		if owned, err := client.Owned(ctx, "bare", ns); err != nil || len(owned) > 0 {
			t.Errorf("left: %v, %v", owned, err)
		}
	})
	t.Run("pods run", func(t *testing.T) {
		r := applied(ctx, t, client, "busy", "")
		_, err := client.Delete(limited, objects(t, "busy", r.ns, "a"))
		if err == nil || !strings.Contains(err.Error(),
			"delete the pods of Deployment/"+r.ns+"/busy: the controller manager does not act") {
			t.Errorf("got %v", err)
		}
		if limited.Err() != nil {
			t.Error("it waited until the timeout")
		}
		server.CollectGarbage(t, r.ns)
		if _, err := client.Delete(ctx, objects(t, "busy", r.ns, "a")); err != nil {
			t.Errorf("again, with a garbage collector: %v", err)
		}
		if owned, err := client.Owned(ctx, "busy", r.ns); err != nil || len(owned) > 0 {
			t.Errorf("left: %v, %v", owned, err)
		}
	})
}

// The spec of a Deployment that an interrupted run is still deleting equals the spec to apply.
func TestApplyCreatesADeploymentAgainThatIsBeingDeleted(t *testing.T) {
	ctx, client, ns := testContext(t), newClient(t, server.Config(), impatient), server.Namespace(t)
	if _, err := client.Apply(ctx, objects(t, "leaving", ns, "a")); err != nil {
		t.Fatal(err)
	}
	deployments, foreground := server.Client(t).AppsV1().Deployments(ns), metav1.DeletePropagationForeground
	if err := deployments.Delete(ctx, "leaving", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
		t.Fatal(err)
	}
	changes, err := client.Apply(ctx, objects(t, "leaving", ns, "a"))
	if err != nil || !strings.Contains(changes.String(), "Deployment/"+ns+"/leaving recreated (it is being deleted)\n") {
		t.Errorf("got %v\n%s", err, changes)
	}
	if d, err := deployments.Get(ctx, "leaving", metav1.GetOptions{}); err != nil || d.DeletionTimestamp != nil {
		t.Errorf("got %v, %v", d, err)
	}
	if _, err := client.Delete(ctx, objects(t, "leaving", ns, "a")); err != nil {
		t.Error(err)
	}
}

func TestDeployWithoutAControllerManagerLeavesNothing(t *testing.T) {
	ctx, client, ns := testContext(t), newClient(t, server.Config(), impatient), server.Namespace(t)
	request := &v1alpha1.CustomScheduler{}
	request.Name, request.Namespace, request.Spec.Credentials = "alone", ns, deploy.CredentialsServiceAccount
	plan, err := deploy.NewPlan(request,
		deploy.Facts{Image: "localhost/scheduler:v1", Branch: "v1.24.3", Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	deps := deploy.Deps{
		Cluster: client, Holder: t.Name(),
		Binary: func(context.Context, *deploy.Plan, string) (configcheck.Binary, error) {
			return configcheck.Binary{}, configcheck.ErrNoBinary
		},
	}
	for range 2 { // a second run is not hindered by the first
		_, err = deploy.Deploy(ctx, deps, plan, deploy.RunOptions{})
		if err == nil || !strings.Contains(err.Error(), "the controller manager does not act") ||
			errors.Is(err, steps.ErrUndo) {
			t.Fatalf("got %v", err)
		}
		if kinds := ownedKinds(ctx, t, client, "alone",
			ns); strings.TrimSpace(strings.ReplaceAll(kinds, "Secret", "")) != "" {
			t.Errorf("left in addition to revisions: %s", kinds)
		}
	}
	if _, err := server.Client(t).AppsV1().Deployments(ns).Get(ctx, "alone",
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Deployment: %v", err)
	}
	if _, err := deploy.Uninstall(ctx, deps, ns, "alone"); err != nil {
		t.Error(err)
	}
	if kinds := ownedKinds(ctx, t, client, "alone", ns); kinds != "" {
		t.Errorf("left after uninstall: %s", kinds)
	}
}
