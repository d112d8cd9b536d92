package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/deploy/verify"
)

// run is one reconciliation of one object.
type run struct {
	*reconciler
	object *v1alpha1.CustomScheduler
	// recorded is the object with the status that the API server has.
	recorded *v1alpha1.CustomScheduler
	session  session.Session
	servers  Servers
}

// Reconcile deploys an object, and records the result in its status.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := &v1alpha1.CustomScheduler{}
	if err := r.direct.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	object.APIVersion, object.Kind = v1alpha1.APIVersion, v1alpha1.Kind
	u := &run{reconciler: r, object: object, recorded: object.DeepCopy(), session: r.sessionFor(object)}
	if !object.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, u.finish(ctx)
	}
	servers := r.servers.Load()
	if servers == nil {
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	u.servers = *servers
	err := u.deployIfNeeded(ctx)
	if err != nil {
		return u.record(ctx, err)
	}
	running, err := u.rollOut(ctx)
	result, err := u.record(ctx, err)
	if running && err == nil {
		result.RequeueAfter = min(result.RequeueAfter, rolloutLook)
	}
	return result, err
}

// sessionFor returns a session whose messages name the object.
func (r *reconciler) sessionFor(object *v1alpha1.CustomScheduler) session.Session {
	s := r.session
	log := r.log.With(zap.String("object", object.Namespace+"/"+object.Name))
	s.Owner, s.Log = deploy.OwnerName(object), log
	s.Warn = func(text string) { log.Warn(text) }
	s.Note = func(text string) { log.Debug(text) }
	s.OnStep = func(name string) func(error) {
		return func(err error) { log.Debug("step "+name, zap.Error(err)) }
	}
	return s
}

// deployIfNeeded deploys the release for the API server if the object, the release or one of the
// scheduler's objects has changed.
func (u *run) deployIfNeeded(ctx context.Context) error {
	if err := u.object.ValidateObject(); err != nil {
		return &stalled{reason: "InvalidSpec", err: problem.Invalidf("", "%w", err)}
	}
	index, err := u.releases(ctx, u.object, u.servers)
	if err != nil {
		return u.unreadable(err)
	}
	wanted, err := u.targetOf(index)
	if err != nil || wanted == nil {
		return err
	}
	due, err := u.isDue(ctx, wanted, u.drift)
	if err != nil || !due {
		return err
	}
	sp, err := u.validate(ctx, wanted)
	if err != nil {
		return &stalled{reason: "InvalidSpec", err: err}
	}
	if err := u.hold(ctx); err != nil {
		return err
	}
	return u.deploy(ctx, wanted, sp)
}

// targetOf sets the conditions for the release, and returns the index's release to deploy or to
// keep: nil if there is none. After a failed deployment it returns that error until it is time for
// the next attempt.
func (u *run) targetOf(index *v1alpha1.SchedulerReleases) (*target, error) {
	chosen, err := choose(u.object, index, u.servers)
	if err != nil {
		return nil, &stalled{reason: "ReleasesUnreadable", err: err}
	}
	u.describeChoice(chosen)
	if chosen.deploy == nil {
		return nil, nil
	}
	chosen.deploy.bind(u.session.Bounds)
	if f := u.lastFailure(chosen.deploy); f != nil && time.Now().Before(f.err.next) {
		return nil, f.err
	}
	return chosen.deploy, nil
}

// validate returns the scheduler to deploy, or the error that its deployment would begin with.
func (u *run) validate(ctx context.Context, t *target) (*spec.Spec, error) {
	request, err := t.request(u.object)
	if err != nil {
		return nil, err
	}
	sp, err := spec.Of(spec.Flags{Version: u.o.Version, CacheDir: u.session.CacheDir}, request, deploy.OwnerName(u.object))
	if err != nil {
		return nil, err
	}
	if t.isDeployed(u.object.Status.Release) {
		sp = sp.KeepImages()
	}
	return sp, lifecycle.Validate(ctx, &u.session, sp)
}

// hold adds the finalizer. An object that is never deployed has none: there is nothing to remove
// when it is deleted.
func (u *run) hold(ctx context.Context) error {
	if controllerutil.ContainsFinalizer(u.object, v1alpha1.Finalizer) {
		return nil
	}
	held := u.object.DeepCopy()
	controllerutil.AddFinalizer(held, v1alpha1.Finalizer)
	if err := u.Patch(ctx, held, client.MergeFrom(u.object)); err != nil {
		return fmt.Errorf("add the finalizer: %w", err)
	}
	u.object.Finalizers, u.object.ResourceVersion = held.Finalizers, held.ResourceVersion
	return nil
}

// isDue reports whether the target has to be deployed. compare returns how the deployed objects
// differ from their revision, or "".
func (u *run) isDue(ctx context.Context, t *target, compare func(context.Context) (string, error)) (bool, error) {
	status := &u.object.Status
	if !t.isDeployed(status.Release) || status.ObservedGeneration != u.object.Generation ||
		!u.is(v1alpha1.ConditionVerified) || u.isUnfinished() {
		return true, nil
	}
	status.Release.Server = t.server
	key := client.ObjectKeyFromObject(u.object)
	if at, ok := u.compared.Load(key); ok && time.Since(at.(time.Time)) < u.o.Resync {
		return false, nil
	}
	u.compared.Store(key, time.Now()) // a change during the comparison removes it
	drift, err := compare(ctx)
	if err != nil {
		err = fmt.Errorf("compare scheduler %s with its revision: %w", u.object.Name, err)
	} else {
		err = u.assess(drift)
	}
	if err != nil {
		u.compared.Delete(key)
	}
	return drift != "" && err == nil, err
}

// assess sets the drift condition, and begins a repair if there is drift.
func (u *run) assess(drift string) error {
	if drift == "" {
		u.set(v1alpha1.ConditionDrifted, metav1.ConditionFalse, "Unchanged", "the objects are as deployed")
		return nil
	}
	u.set(v1alpha1.ConditionDrifted, metav1.ConditionTrue, "Changed", drift)
	if err := u.beginRepair(drift, time.Now()); err != nil {
		return err
	}
	u.session.Log.Info("an object was changed by others; deploying again", zap.String("drift", drift))
	return nil
}

// isUnfinished reports whether the last change to the object was not deployed. Its generation is
// observed nevertheless. Repairs that were too many are not such a change.
func (u *run) isUnfinished() bool {
	c := meta.FindStatusCondition(u.object.Status.Conditions, v1alpha1.ConditionStalled)
	return c != nil && c.Status == metav1.ConditionTrue && c.Reason != repairedTooOften
}

// deploy deploys the target as `pmk-sched deploy` does, and verifies it with a pod.
func (u *run) deploy(ctx context.Context, t *target, sp *spec.Spec) error {
	if err := u.checkAvailable(ctx); err != nil {
		return err
	}
	u.progress("Deploying", fmt.Sprintf("deploying %s, image %s", t.Release, t.Image))
	if err := u.patchStatus(ctx); err != nil {
		return err
	}
	var proof *verify.Result
	verifyPod := func(ctx context.Context, plan *deploy.Plan) (err error) {
		proof, err = verify.Scheduler(ctx, u.config, verify.Options{Name: plan.Name, Namespace: plan.Namespace,
			In: plan.Namespace, Timeout: u.o.Timeout, Log: u.session.Log})
		return err
	}
	sp, err := u.atStep(ctx, sp)
	if err != nil {
		return err
	}
	_, outcome, err := lifecycle.Deploy(ctx, &u.session, sp,
		deploy.RunOptions{Timeout: u.o.Timeout, StableFor: u.o.StableFor, Verify: verifyPod})
	if err != nil {
		return u.fail(t, err)
	}
	u.forget()
	status := &u.object.Status
	status.Revision, status.Release = outcome.Revision, t.status()
	status.ObservedGeneration = u.object.Generation
	status.LastVerified = &v1alpha1.Verification{Time: metav1.Now(), Pod: proof.Namespace + "/" + proof.Pod,
		Node: proof.Node}
	u.describeDeployed(proof)
	u.session.Log.Info("deployed", zap.String("release", t.Release), zap.Int("revision", outcome.Revision))
	return nil
}

// finish removes the scheduler of an object that is being deleted, or leaves it, and releases the
// object.
func (u *run) finish(ctx context.Context) error {
	if !controllerutil.ContainsFinalizer(u.object, v1alpha1.Finalizer) {
		return nil
	}
	if u.object.Spec.DeletionPolicy != v1alpha1.DeletionOrphan {
		if err := u.uninstall(ctx); err != nil {
			u.set(v1alpha1.ConditionStalled, metav1.ConditionTrue, "UninstallFailed", describe(err))
			return errors.Join(err, u.patchStatus(ctx))
		}
	}
	before := u.object.DeepCopy()
	controllerutil.RemoveFinalizer(u.object, v1alpha1.Finalizer)
	u.forget()
	u.rollouts.Delete(client.ObjectKeyFromObject(u.object))
	u.repaired.Delete(client.ObjectKeyFromObject(u.object))
	return client.IgnoreNotFound(u.Patch(ctx, u.object, client.MergeFrom(before)))
}

// uninstall removes the scheduler as its revisions record it, unless it belongs to another owner.
// The spec does not matter: it may have changed since to one that no cluster accepts.
func (u *run) uninstall(ctx context.Context) error {
	timeout := u.o.Timeout
	if timeout <= 0 {
		timeout = uninstallTimeout
	}
	err := lifecycle.Remove(ctx, &u.session, u.object.Namespace, u.object.Name, timeout)
	if errors.As(err, new(*deploy.OwnerError)) {
		return nil
	}
	return err
}

// uninstallTimeout is the default time for the objects to disappear.
const uninstallTimeout = 5 * time.Minute

// patchStatus writes the status if it has changed. Only the controller writes it.
func (u *run) patchStatus(ctx context.Context) error {
	if equality.Semantic.DeepEqual(u.recorded.Status, u.object.Status) {
		return nil
	}
	before, changed := u.object.DeepCopy(), u.object.DeepCopy()
	before.Status = u.recorded.Status
	if err := u.Status().Patch(ctx, changed, client.MergeFrom(before)); err != nil {
		return client.IgnoreNotFound(err)
	}
	u.recorded = u.object.DeepCopy()
	return nil
}
