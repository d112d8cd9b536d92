// Package timestamp is a portable plugin that sets an annotation with the current time on each pod
// before it is bound.
//
// It runs at PreBind, not at PostBind. At PreBind the annotation is set before the kubelet sees the
// pod, so that containers can read it through the downward API as soon as they start, and a pod is
// not bound if the patch fails. PostBind is closer to the time of binding, but the kubelet may
// already have started the pod, and PostBind can only log a failed patch. The drawback of PreBind:
// a pod whose binding fails keeps the annotation until the next attempt overwrites it.
package timestamp

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Name is the plugin's name in the scheduler's configuration.
const Name = "Timestamp"

// Values of Arguments.OnFailure.
const (
	// OnFailureRetry ends the attempt, and the scheduler retries the pod.
	OnFailureRetry = "Retry"
	// OnFailureIgnore binds the pod without the annotation.
	OnFailureIgnore = "Ignore"
)

// Arguments are the plugin's arguments in the configuration.
type Arguments struct {
	// Annotation is the annotation's key, "Scheduler-Timestamp" by default.
	Annotation string `json:"annotation,omitempty"`
	// OnFailure is the result of a failed patch for the pod: Retry (the default) or Ignore.
	OnFailure string `json:"onFailure,omitempty"`
}

// Timestamp annotates pods with the time.
type Timestamp struct {
	handle    scheduler.Handle
	arguments Arguments
	now       func() time.Time
	metrics   metrics
}

// New returns the plugin configured by its arguments.
func New(_ context.Context, args scheduler.Arguments, h scheduler.Handle) (*Timestamp, error) {
	a, err := decode(args)
	if err != nil {
		return nil, err
	}
	if h.ClientSet() == nil {
		return nil, fmt.Errorf("%s needs a cluster: the scheduler has no client", Name)
	}
	m, err := newMetrics(h.Metrics())
	if err != nil {
		return nil, err
	}
	return &Timestamp{handle: h, arguments: a, now: time.Now, metrics: m}, nil
}

// Rules returns the permission to patch pods, which kube-scheduler does not have.
func Rules(args scheduler.Arguments) ([]rbacv1.PolicyRule, error) {
	if _, err := decode(args); err != nil {
		return nil, err
	}
	return []rbacv1.PolicyRule{scheduler.AnnotateRule()}, nil
}

func decode(args scheduler.Arguments) (Arguments, error) {
	a := Arguments{Annotation: "Scheduler-Timestamp", OnFailure: OnFailureRetry}
	if err := args.Decode(&a); err != nil {
		return a, err
	}
	// The API server converts annotation keys to lower case to validate them.
	if wrong := validation.IsQualifiedName(strings.ToLower(a.Annotation)); len(wrong) > 0 {
		return a, fmt.Errorf("annotation: %q is not an annotation key: %s", a.Annotation, strings.Join(wrong, "; "))
	}
	if a.OnFailure != OnFailureRetry && a.OnFailure != OnFailureIgnore {
		return a, fmt.Errorf("onFailure: %q is neither %s nor %s", a.OnFailure, OnFailureRetry, OnFailureIgnore)
	}
	return a, nil
}

// Name returns the plugin's name.
func (t *Timestamp) Name() string { return Name }

// PreBind sets the annotation.
func (t *Timestamp) PreBind(ctx context.Context, _ scheduler.State, pod *corev1.Pod, node string) *scheduler.Status {
	start := t.now()
	stamp := strconv.FormatInt(start.UnixNano(), 10)
	annotation := map[string]string{t.arguments.Annotation: stamp}
	err := scheduler.AnnotatePod(ctx, t.handle.ClientSet(), pod, annotation)
	t.metrics.duration.Observe(t.now().Sub(start).Seconds())
	log := t.handle.Logger(ctx)
	if err == nil {
		t.metrics.stamps.WithLabelValues("ok").Inc()
		log.Info(5, "Timestamp annotated a pod", "namespace", pod.Namespace, "pod", pod.Name, "node", node, "annotation",
			t.arguments.Annotation, "value", stamp)
		return nil
	}
	t.metrics.stamps.WithLabelValues("error").Inc()
	err = fmt.Errorf("set annotation %s on pod %s/%s: %w", t.arguments.Annotation, pod.Namespace, pod.Name, err)
	if t.arguments.OnFailure == OnFailureIgnore {
		log.Error(err, "Timestamp binds a pod without the annotation", "namespace", pod.Namespace, "pod", pod.Name)
		return nil
	}
	return scheduler.Error(err)
}

type metrics struct {
	stamps   *prometheus.CounterVec
	duration prometheus.Observer
}

func newMetrics(r prometheus.Registerer) (metrics, error) {
	all := scheduler.NewMetrics(r, "pmk_sched_timestamp_")
	m := metrics{stamps: all.Counter("stamps_total", "Patches of the Timestamp plugin, by result.", "result")}
	duration := all.Histogram("patch_duration_seconds", "Duration of the Timestamp plugin's patches.",
		prometheus.ExponentialBuckets(0.001, 2, 12))
	if all.Err() != nil {
		return metrics{}, all.Err()
	}
	m.duration = duration.WithLabelValues()
	return m, nil
}
