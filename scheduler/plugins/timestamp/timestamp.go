// Package timestamp is a portable plugin that stamps an annotation with the time on each pod as it is bound.
//
// It works at PreBind, not at PostBind. At PreBind the stamp is on the pod before any kubelet sees it, so a container
// can read it through the downward API from its first instruction on, and a pod whose stamp failed is not bound without one.
// PostBind would be nearer to the instant of binding, but a stamp of that moment comes after the
// kubelet may have started the pod, and one that failed would be lost, since PostBind can only log. What PreBind costs is that a
// pod whose binding fails keeps a stamp until its next attempt writes a new one.
package timestamp

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Name is the plugin's name in the scheduler's configuration.
const Name = "Timestamp"

// Values of Arguments.OnFailure.
const (
	// OnFailureRetry gives the node up and lets the scheduler try the pod again.
	OnFailureRetry = "Retry"
	// OnFailureIgnore binds the pod without a stamp.
	OnFailureIgnore = "Ignore"
)

// Arguments are what stands under pluginConfig.
type Arguments struct {
	// Annotation is the key of the annotation, "Scheduler-Timestamp" by default.
	Annotation string `json:"annotation,omitempty"`
	// OnFailure says what becomes of a pod that could not be stamped: Retry (the default) or Ignore.
	OnFailure string `json:"onFailure,omitempty"`
}

// Timestamp stamps pods.
type Timestamp struct {
	handle    scheduler.Handle
	arguments Arguments
	now       func() time.Time
	metrics   metrics
}

// New makes the plugin of its arguments.
func New(_ context.Context, args scheduler.Arguments, h scheduler.Handle) (*Timestamp, error) {
	a, err := decode(args)
	if err != nil {
		return nil, err
	}
	if h.ClientSet() == nil {
		return nil, fmt.Errorf("%s needs a cluster: there is no client", Name)
	}
	m, err := newMetrics(h.Metrics())
	if err != nil {
		return nil, fmt.Errorf("register metrics of %s: %w", Name, err)
	}
	return &Timestamp{handle: h, arguments: a, now: time.Now, metrics: m}, nil
}

// Rules returns the rule that lets the scheduler patch pods, which no scheduler may by itself.
func Rules(args scheduler.Arguments) ([]rbacv1.PolicyRule, error) {
	if _, err := decode(args); err != nil {
		return nil, err
	}
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"patch"}}}, nil
}

func decode(args scheduler.Arguments) (Arguments, error) {
	a := Arguments{Annotation: "Scheduler-Timestamp", OnFailure: OnFailureRetry}
	if err := args.Decode(&a); err != nil {
		return a, err
	}
	// The API server compares annotation keys without regard to case when it validates them.
	if wrong := validation.IsQualifiedName(strings.ToLower(a.Annotation)); len(wrong) > 0 {
		return a, fmt.Errorf("annotation: %q is not the key of an annotation: %s", a.Annotation, strings.Join(wrong, "; "))
	}
	if a.OnFailure != OnFailureRetry && a.OnFailure != OnFailureIgnore {
		return a, fmt.Errorf("onFailure: %q is neither %s nor %s", a.OnFailure, OnFailureRetry, OnFailureIgnore)
	}
	return a, nil
}

// Name returns the plugin's name.
func (t *Timestamp) Name() string { return Name }

// PreBind stamps the pod.
func (t *Timestamp) PreBind(ctx context.Context, _ scheduler.State, pod *corev1.Pod, node string) *scheduler.Status {
	began := t.now()
	stamp := strconv.FormatInt(began.UnixNano(), 10)
	err := t.stamp(ctx, pod, stamp)
	t.metrics.duration.Observe(t.now().Sub(began).Seconds())
	log := t.handle.Logger(ctx)
	if err == nil {
		t.metrics.stamps.WithLabelValues("ok").Inc()
		log.Info(5, "Timestamp stamped a pod", "namespace", pod.Namespace, "pod", pod.Name, "node", node, "annotation", t.arguments.Annotation, "value", stamp)
		return nil
	}
	t.metrics.stamps.WithLabelValues("error").Inc()
	err = fmt.Errorf("stamp annotation %s on pod %s/%s: %w", t.arguments.Annotation, pod.Namespace, pod.Name, err)
	if t.arguments.OnFailure == OnFailureIgnore {
		log.Error(err, "Timestamp binds a pod without a stamp", "namespace", pod.Namespace, "pod", pod.Name)
		return nil
	}
	return scheduler.Error(err)
}

// stamp sends a merge patch with nothing but the annotation and the pod's uid. Without a resourceVersion the API server applies it
// to whatever the pod is by then, so other writers do not matter; with the uid it refuses a new pod of the same name.
func (t *Timestamp) stamp(ctx context.Context, pod *corev1.Pod, value string) error {
	metadata := map[string]interface{}{"annotations": map[string]string{t.arguments.Annotation: value}}
	if pod.UID != "" {
		metadata["uid"] = pod.UID
	}
	patch, err := json.Marshal(map[string]interface{}{"metadata": metadata})
	if err != nil {
		return err
	}
	_, err = t.handle.ClientSet().CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

type metrics struct {
	stamps   *prometheus.CounterVec
	duration prometheus.Histogram
}

func newMetrics(r prometheus.Registerer) (metrics, error) {
	stamps, err := scheduler.Register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pmk_sched_timestamp_stamps_total",
		Help: "Pods that Timestamp stamped, by result.",
	}, []string{"result"}))
	if err != nil {
		return metrics{}, err
	}
	duration, err := scheduler.Register(r, prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "pmk_sched_timestamp_patch_duration_seconds",
		Help:    "Time that the patch with the stamp took.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
	}))
	if err != nil {
		return metrics{}, err
	}
	m := metrics{}
	var counts, times bool
	m.stamps, counts = stamps.(*prometheus.CounterVec)
	m.duration, times = duration.(prometheus.Histogram)
	if !counts || !times {
		return metrics{}, fmt.Errorf("another kind of metric has the name")
	}
	return m, nil
}
