// Package verify proves with a pod of its own that a deployed scheduler schedules ([Scheduler]), or that a replaced default scheduler
// does ([DefaultScheduler]).
package verify

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/kubeapi"
)

const (
	verifyPrefix   = "pmk-sched-verify-"
	verifyPod      = "probe"
	verifyTimeout  = time.Minute
	cleanupTimeout = 30 * time.Second
	// eventTimeout is how long the Scheduled event may come after the binding: schedulers write events in the background.
	eventTimeout = 15 * time.Second
	poll         = 500 * time.Millisecond
)

// Options says which scheduler to verify, and how.
type Options struct {
	Name      string // scheduler name, and name of its Deployment
	Namespace string // of its Deployment and its Lease
	// Image is that of the pod that is to be scheduled; it does not have to start. Empty: the scheduler's own, which is on its node
	// already, run only to print its version.
	Image   string
	Timeout time.Duration // how long the pod may stay unbound; 0: 1 minute
	Keep    bool          // leave the namespace and its pod
	Log     *zap.Logger   // nil: silent
	// OnStep is told the name of each step when it begins, and gives a function to be told its end; either may be nil.
	OnStep func(name string) (done func(err error))
}

// Result is what [Scheduler] saw.
type Result struct {
	Scheduler string `json:"scheduler"`
	Namespace string `json:"namespace"` // of the pod
	Pod       string `json:"pod"`
	Node      string `json:"node"`
	BoundBy   string `json:"boundBy"`            // the scheduler's name as its Scheduled event gives it
	Instance  string `json:"instance,omitempty"` // which process of it, as the event gives it or, if it does not, the lease
	// SchedulerPod is the pod, namespace/name, whose process that is; empty if none of the Deployment's pods matches.
	SchedulerPod string  `json:"schedulerPod,omitempty"`
	Seconds      float64 `json:"seconds"`    // from creation to bound
	MeasuredBy   string  `json:"measuredBy"` // which clock Seconds is of
	// ToleratesControlPlane tells that the pod had to tolerate the control plane's taints, because there is no other node.
	ToleratesControlPlane bool     `json:"toleratesControlPlane"`
	Notes                 []string `json:"notes,omitempty"` // what a person should know
}

// Values of Result.MeasuredBy.
const (
	MeasuredLocally = "local clock"                             // between the answer to the creation and the watch event of the binding
	MeasuredByAPI   = "API server's timestamps (whole seconds)" // creationTimestamp and the condition PodScheduled, where the pod was polled
)

// verifier makes one verification.
type verifier struct {
	Options
	kube  kubernetes.Interface
	retry *kubeapi.Retrier
	v     *Result
	made  bool // the namespace may be there
}

// Verify makes a pod with our schedulerName in a namespace of its own, waits until it is bound, and proves by the source of its Scheduled event
// that our scheduler bound it.
//
// It cleans up after itself also when ctx is cancelled, unless o.Keep. The error is a [*NotScheduledError] when the pod is not
// bound in time or was bound by another; with it, and with an error of cleaning up, the Result holds what was seen so far.
func Scheduler(ctx context.Context, cfg *rest.Config, o Options) (_ *Result, err error) {
	cfg = kubeapi.ClientConfig(cfg, o.Log)
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	if o.Timeout <= 0 {
		o.Timeout = verifyTimeout
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	r := &verifier{Options: o, kube: kube, retry: &kubeapi.Retrier{Log: o.Log}, v: &Result{
		// The name is chosen here and not by the API server, so that the namespace can be deleted even if the answer to its creation is lost.
		Scheduler: o.Name, Namespace: verifyPrefix + utilrand.String(5), Pod: verifyPod,
	}}
	defer func() {
		if !r.made {
			return
		}
		if o.Keep {
			r.note("namespace %s and its pod are kept", r.v.Namespace)
			return
		}
		cleanCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		err = errors.Join(err, r.step("clean up", func() error { return r.cleanUp(cleanCtx) }))
	}()
	return r.v, r.run(ctx)
}

func (r *verifier) run(ctx context.Context) error {
	var pod *corev1.Pod
	var created time.Time
	err := r.step("create a pod with schedulerName "+r.Name, func() (err error) {
		pod, err = r.createPod(ctx)
		created = time.Now()
		return err
	})
	if err != nil {
		return err
	}
	err = r.step("wait until it is bound", func() error {
		waitCtx, cancel := context.WithTimeout(ctx, r.Timeout)
		defer cancel()
		bound, at, err := r.waitBound(waitCtx, pod)
		if err == nil {
			pod = bound
			r.v.Node = bound.Spec.NodeName
			r.v.Seconds, r.v.MeasuredBy = duration(bound, created, at)
			return nil
		}
		if ctx.Err() == nil && errors.Is(waitCtx.Err(), context.DeadlineExceeded) {
			return r.explainPending(ctx, pod)
		}
		return fmt.Errorf("wait until Pod/%s/%s is bound: %w", pod.Namespace, pod.Name, err)
	})
	if err != nil {
		return err
	}
	return r.step("prove that "+r.Name+" bound it", func() error { return r.prove(ctx, pod) })
}

func (r *verifier) step(name string, do func() error) error {
	var done func(error)
	if r.OnStep != nil {
		done = r.OnStep(name)
	}
	err := do()
	if done != nil {
		done(err)
	}
	return err
}

func (r *verifier) note(format string, args ...any) {
	r.v.Notes = append(r.v.Notes, fmt.Sprintf(format, args...))
}

// duration is how long the pod took from creation to bound. at is the local time when a watch told of the binding, zero if it did not.
func duration(pod *corev1.Pod, created, at time.Time) (seconds float64, measuredBy string) {
	if !at.IsZero() {
		return math.Round(at.Sub(created).Seconds()*1000) / 1000, MeasuredLocally
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime.Sub(pod.CreationTimestamp.Time).Seconds(), MeasuredByAPI
		}
	}
	return 0, MeasuredByAPI
}
