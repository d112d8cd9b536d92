// Package watchdog ends the route to a scheduler of which no replica leads, releases the pods that
// wait for it, and resumes the route when it leads again.
package watchdog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/cluster/suspension"
	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
)

// look is the time between two looks at the leases of all schedulers with a route.
const look = time.Second

// Options of a watchdog. There must be one in a cluster.
type Options struct {
	Config *rest.Config
	// Component is named as the source of events.
	Component string
	// Recovery is how long a scheduler has to lead again before its route is resumed. The default is a
	// minute.
	Recovery time.Duration
	Log      *zap.Logger
	// Metrics registers the metrics; may be nil.
	Metrics prometheus.Registerer
}

// watchdog follows the schedulers with a route.
type watchdog struct {
	Options
	kube    kubernetes.Interface
	dynamic dynamic.Interface
	events  record.EventRecorder
	metrics metrics
	// leaders and releasers are by the name of the scheduler.
	leaders   map[string]*leader
	releasers map[string]*releaser
	// failed is the last error of each kind of work, which is logged once.
	failed map[string]string
}

// Run follows the schedulers with a route until ctx ends.
func Run(ctx context.Context, o Options) error {
	o.Recovery = cmp.Or(o.Recovery, time.Minute)
	kube, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return fmt.Errorf("watch the schedulers with a route: %w", err)
	}
	w := &watchdog{Options: o, kube: kube, leaders: map[string]*leader{}, releasers: map[string]*releaser{},
		failed: map[string]string{}}
	if w.dynamic, err = dynamic.NewForConfig(o.Config); err != nil {
		return fmt.Errorf("watch the schedulers with a route: %w", err)
	}
	if w.metrics, err = newMetrics(o.Metrics); err != nil {
		return err
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: kube.CoreV1().Events("")})
	w.events = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: o.Component})
	for {
		began := time.Now()
		w.check(ctx)
		// What a look does counts: pods are released at each.
		if clock.Sleep(ctx, max(0, look-time.Since(began))) != nil {
			return nil
		}
	}
}

// check looks at each route once. A scheduler has two while a webhook is replaced with a policy.
func (w *watchdog) check(ctx context.Context) {
	registered, err := route.Read(ctx, w.dynamic)
	if w.report("read the routes", err) != nil {
		return
	}
	seen := map[string]error{} // by scheduler: why its lease could not be read
	for _, o := range registered {
		rule, err := route.Decode(o.GetAnnotations())
		if w.report("read the route "+o.GetName(), err) != nil {
			continue
		}
		_, again := seen[rule.Scheduler]
		if !again {
			seen[rule.Scheduler] = w.report("follow scheduler "+rule.Scheduler, w.observe(ctx, o, rule))
		}
		if seen[rule.Scheduler] != nil {
			continue
		}
		_ = w.report("change "+o.GetKind()+"/"+o.GetName(), w.follow(ctx, o, rule)) // logged
		if !again {
			_ = w.report("release pods of scheduler "+rule.Scheduler, w.release(ctx, o, rule)) // logged
		}
	}
	for name := range w.leaders {
		if _, is := seen[name]; !is {
			delete(w.leaders, name)
			delete(w.releasers, name)
			w.metrics.forget(name)
		}
	}
}

// report logs an error when it is new, and returns it.
func (w *watchdog) report(doing string, err error) error {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != w.failed[doing] {
		w.Log.Warn("could not "+doing, zap.Error(err))
	}
	w.failed[doing] = text
	return err
}

// observe looks at the lease of a scheduler. o is one of its registrations.
func (w *watchdog) observe(ctx context.Context, o route.Registered, rule route.Rule) error {
	namespace, name, found := strings.Cut(rule.Lease, "/")
	if !found {
		return nil // a scheduler without leader election: nobody can tell
	}
	l := w.leaders[rule.Scheduler]
	if l == nil {
		l = &leader{}
		w.leaders[rule.Scheduler] = l
	}
	lease, err := w.kube.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	now := time.Now()
	switch {
	case apierrors.IsNotFound(err):
		l.observe(nil, now)
	case err != nil:
		l.unknown(now)
		return fmt.Errorf("read Lease/%s: %w", rule.Lease, err)
	default:
		l.observe(lease, now)
	}
	_, suspended := suspension.Since(o.Unstructured)
	w.metrics.suspended.WithLabelValues(rule.Scheduler).Set(boolean(suspended))
	return nil
}

// follow suspends or resumes a route.
func (w *watchdog) follow(ctx context.Context, o route.Registered, rule route.Rule) error {
	l, now := w.leaders[rule.Scheduler], time.Now()
	if l == nil {
		return nil
	}
	_, suspended := suspension.Since(o.Unstructured)
	switch {
	case !suspended && l.lost(rule.Route.FailureAfterOrDefault(), now):
		err := w.set(ctx, o, func(o *unstructured.Unstructured) error { return suspension.Suspend(o, now) })
		if err == nil {
			w.say(o, rule, corev1.EventTypeWarning, "RouteSuspended",
				"no replica of scheduler %s has led for %s: new pods are not routed to it", rule.Scheduler,
				rule.Route.FailureAfterOrDefault())
		}
		return err
	case suspended && l.recovered(w.Recovery, now):
		delete(w.releasers, rule.Scheduler)
		err := w.set(ctx, o, suspension.Resume)
		if err == nil {
			w.say(o, rule, corev1.EventTypeNormal, "RouteResumed", "scheduler %s has led for %s: new pods are routed to it",
				rule.Scheduler, w.Recovery)
		}
		return err
	}
	return nil
}

// set changes a registration unless somebody else has changed it.
func (w *watchdog) set(ctx context.Context, o route.Registered, change func(*unstructured.Unstructured) error) error {
	changed := o.DeepCopy()
	if err := change(changed); err != nil {
		return err
	}
	_, err := w.dynamic.Resource(o.Resource).Update(ctx, changed, metav1.UpdateOptions{FieldManager: w.Component})
	if err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("change %s/%s: %w", o.GetKind(), o.GetName(), err)
	}
	return err
}

// say logs what happened to a route, and writes an event for the scheduler's Deployment.
func (w *watchdog) say(o route.Registered, rule route.Rule, kind, reason, format string, args ...any) {
	w.Log.Info(fmt.Sprintf(format, args...), zap.String("registration", o.GetKind()+"/"+o.GetName()))
	w.events.Eventf(&corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: rule.Namespace,
		Name: rule.Scheduler}, kind, reason, format, args...)
}

// release deletes some pods that wait for a scheduler, if it is lost and its route ended before
// this look. A scheduler that has recovered can count as lost too, if its failureAfter is shorter
// than [pulse]: its route is resumed, and its pods wait for it.
func (w *watchdog) release(ctx context.Context, o route.Registered, rule route.Rule) error {
	l, scheduler, now := w.leaders[rule.Scheduler], rule.Scheduler, time.Now()
	_, suspended := suspension.Since(o.Unstructured)
	if l == nil || !suspended || rule.Route.OnFailure != v1alpha1.OnFailureRelease ||
		!l.lost(rule.Route.FailureAfterOrDefault(), now) || l.recovered(w.Recovery, now) {
		return nil
	}
	r := w.releasers[scheduler]
	if r == nil {
		r = &releaser{kube: w.kube, events: w.events, kept: map[types.UID]bool{}}
		w.releasers[scheduler] = r
	}
	released, kept, err := r.release(ctx, scheduler)
	w.metrics.released.WithLabelValues(scheduler).Add(float64(released))
	if released < releasesPerLook { // otherwise there are more pods
		w.metrics.kept.WithLabelValues(scheduler).Set(float64(kept))
	}
	return err
}

// metrics are the metrics of the watchdog, by scheduler.
type metrics struct {
	suspended, kept *prometheus.GaugeVec
	released        *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) (metrics, error) {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"scheduler"})
	}
	m := metrics{
		suspended: gauge("pmk_sched_route_suspended", "Whether the route to a scheduler is suspended: no replica leads."),
		kept: gauge("pmk_sched_route_pods_kept",
			"Pods that wait for a scheduler that is lost, and that no controller creates again."),
		released: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pmk_sched_route_pods_released_total",
			Help: "Pods that waited for a scheduler that was lost, and were deleted."}, []string{"scheduler"}),
	}
	if r == nil {
		return m, nil
	}
	var failed []error
	for _, c := range []prometheus.Collector{m.suspended, m.kept, m.released} {
		failed = append(failed, r.Register(c))
	}
	return m, errors.Join(failed...)
}

func (m metrics) forget(scheduler string) {
	m.suspended.DeleteLabelValues(scheduler)
	m.kept.DeleteLabelValues(scheduler)
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
