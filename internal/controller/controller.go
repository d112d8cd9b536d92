// Package controller keeps CustomScheduler objects deployed, as `pmk-sched deploy` does: it chooses
// the image for the API server's release from an object's releases, and deploys, verifies and rolls
// back with [lifecycle.Deploy]. It never builds an image, and never touches the default scheduler.
package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/admission"
	"github.com/pmk-sched/pmk-sched/internal/admission/watchdog"
	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
)

// Options for a controller.
type Options struct {
	// Namespace of the objects, their schedulers and the leader election's lease.
	Namespace string
	// MetricsAddress and HealthAddress are the endpoints' addresses. "0" turns one off.
	MetricsAddress, HealthAddress string
	// LeaderElect lets one of several controllers act. Without it there may be only one.
	LeaderElect bool
	// Interval at which the API servers' versions are read. The default is a minute.
	Interval time.Duration
	// Resync is the interval at which a scheduler's objects are compared with its revision when
	// nothing has changed. The default is 10 minutes.
	Resync time.Duration
	// Timeout and StableFor are the rollout's options: see [deploy.RunOptions].
	Timeout, StableFor time.Duration
	// Workers limits the schedulers that are deployed at the same time. The default is 4.
	Workers int
	// Version of pmk-sched, recorded in a label.
	Version string
	// Admission are the parts of admission control that are installed, or none.
	Admission []string
}

// leaseName is the name of the leader election's lease.
const leaseName = "pmk-sched-controller"

// retryPause is the time between two requests to an API server that does not answer.
const retryPause = 2 * time.Second

// reconciler deploys the objects in one namespace.
type reconciler struct {
	// Client reads from the cache, which may lack the last patches of this controller.
	client.Client
	// direct reads from the API server. An object whose status lacks the last patch looks as if it
	// was not deployed yet.
	direct  client.Reader
	o       Options
	session session.Session
	config  *rest.Config
	apply   *apply.Client
	log     *zap.Logger

	servers atomic.Pointer[Servers]
	// compared maps each scheduler to the time of its last comparison with its revision. A change to
	// one of its objects removes the entry.
	compared sync.Map
	// failed maps objects to their last failed deployment.
	failed sync.Map
	// repaired maps objects to their [repairs].
	repaired sync.Map
	// rollouts maps objects to their [rollout.Poll].
	rollouts sync.Map
	// changed wakes the reconciler when the API servers' versions change.
	changed chan changedServers
}

// Run runs a controller until ctx ends.
func Run(ctx context.Context, s *session.Session, o Options) error {
	o.Interval, o.Resync = cmp.Or(o.Interval, time.Minute), cmp.Or(o.Resync, 10*time.Minute)
	o.Workers = cmp.Or(o.Workers, 4)
	cfg, err := s.Connect()
	if err != nil {
		return err
	}
	mgr, err := awaitManager(ctx, cfg, s.Log, o)
	if err != nil {
		return fmt.Errorf("create the controller: %w", err)
	}
	r := &reconciler{Client: mgr.GetClient(), direct: mgr.GetAPIReader(), o: o, session: *s, config: cfg, log: s.Log,
		changed: make(chan changedServers, 1)}
	r.session.NodeRoot = inspect.NoNode
	if r.apply, err = apply.New(cfg, apply.Options{Log: s.Log}); err != nil {
		return err
	}
	if err := r.setUp(mgr); err != nil {
		return fmt.Errorf("set up the controller: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the controller: %w", err)
	}
	return nil
}

// awaitManager returns the manager as soon as the API server answers. A controller that ended
// instead while a control plane is upgraded would be started again later each time.
func awaitManager(ctx context.Context, cfg *rest.Config, log *zap.Logger, o Options) (manager.Manager, error) {
	for {
		mgr, err := newManager(cfg, o)
		// An API server that starts does not know its roles and service accounts at once.
		if !kubeapi.Transient(err) && !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
			return mgr, err
		}
		log.Warn("the API server does not answer; trying again", zap.Error(err))
		if err := clock.Sleep(ctx, retryPause); err != nil {
			return nil, err
		}
	}
}

// newManager returns a manager whose cache has only pmk-sched's objects.
func newManager(cfg *rest.Config, o Options) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	managed := cache.ByObject{
		Label:     labels.SelectorFromSet(labels.Set{ownership.LabelManagedBy: ownership.Manager}),
		Transform: cache.TransformStripManagedFields(),
	}
	// Revisions, and the keys in them, are not kept in memory.
	secrets, err := labels.Parse(ownership.LabelManagedBy + "=" + ownership.Manager + ",!" + ownership.LabelRevision)
	if err != nil {
		return nil, err
	}
	byObject := map[client.Object]cache.ByObject{}
	for _, kind := range append(watchedKinds(), &appsv1.Deployment{}) {
		byObject[kind] = managed
		if _, isSecret := kind.(*corev1.Secret); isSecret {
			byObject[kind] = cache.ByObject{Label: secrets, Transform: managed.Transform}
		}
	}
	return ctrl.NewManager(cfg, manager.Options{
		Scheme: scheme,
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{o.Namespace: {}}, ByObject: byObject,
			DefaultTransform: cache.TransformStripManagedFields()},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.ConfigMap{}}}},
		// Two controllers in one process, in tests, have the same name.
		Controller:     config.Controller{SkipNameValidation: new(true)},
		Metrics:        metricsserver.Options{BindAddress: o.MetricsAddress},
		LeaderElection: o.LeaderElect, LeaderElectionID: leaseName, LeaderElectionNamespace: o.Namespace,
		LeaderElectionReleaseOnCancel: true,
		HealthProbeBindAddress:        o.HealthAddress,
	})
}

// watchedKinds are the kinds of scheduler and extender objects whose changes are noticed at once,
// in addition to Deployments. Only their metadata is read. Changes to other kinds are noticed by
// the next comparison.
func watchedKinds() []client.Object {
	return []client.Object{
		&corev1.ServiceAccount{}, &corev1.ConfigMap{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}, &rbacv1.ClusterRole{},
		&rbacv1.ClusterRoleBinding{}, &corev1.Secret{}, &corev1.Service{},
	}
}

func (r *reconciler) setUp(mgr manager.Manager) error {
	for _, check := range []func(string, healthz.Checker) error{mgr.AddHealthzCheck, mgr.AddReadyzCheck} {
		if err := check("ping", healthz.Ping); err != nil {
			return err
		}
	}
	if err := mgr.Add(manager.RunnableFunc(r.pollServers)); err != nil {
		return err
	}
	if len(r.o.Admission) > 0 {
		if err := mgr.Add(manager.RunnableFunc(r.keepWebhooks)); err != nil {
			return err
		}
	}
	if slices.Contains(r.o.Admission, admission.Route) {
		follow := func(ctx context.Context) error {
			return watchdog.Run(ctx, watchdog.Options{Config: r.config, Component: Name, Log: r.log, Metrics: metrics.Registry})
		}
		if err := mgr.Add(manager.RunnableFunc(follow)); err != nil {
			return err
		}
	}
	return r.watch(mgr, controller.Options{
		MaxConcurrentReconciles: r.o.Workers,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
			minBackoff, maxBackoff),
	})
}
