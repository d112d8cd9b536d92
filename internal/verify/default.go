package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/kubeapi"
)

// The default scheduler's lease (pkg/scheduler/apis/config/types.go), and the name
// of its container in static pods.
const (
	defaultLease     = "kube-scheduler"
	defaultContainer = "kube-scheduler"
)

// DefaultOptions says how to verify the default scheduler. Options of
// [Options] have the same meaning.
type DefaultOptions struct {
	// Annotation is the one that pods of a replaced scheduler carry.
	Annotation string
	// Want is the annotation's value that has to be found; empty: any.
	Want string
	// Binary is the annotation with the SHA-256 of the program that has to run.
	Binary string
	// Image of the pod that is to be scheduled; empty: the scheduler's own.
	Image   string
	Timeout time.Duration
	Keep    bool
	// Metrics reads the metrics of the scheduler on a node, where the caller can
	// reach them; nil or an error: they are left out of the proof.
	Metrics func(ctx context.Context, node string) (string, error)
	// Running returns the SHA-256 of the programs that run in a container of this
	// machine; nil or an error: they are left out of the proof.
	Running func(containerID string) ([]string, error)
	Log     *zap.Logger
	OnStep  func(name string) (done func(err error))
}

// DefaultResult is what DefaultScheduler saw.
type DefaultResult struct {
	Result
	// Image and ImageID are of the container that bound the pod, Replacement its
	// annotation.
	Image       string `json:"image"`
	ImageID     string `json:"imageID"`
	Replacement string `json:"replacement"`
	// Build is kubernetes_build_info of its metrics, where they could be read.
	Build string `json:"build,omitempty"`
	// Programs are the SHA-256 of what the processes themselves run, where they are
	// on this machine: the one that the replacement checked is among them.
	Programs []string `json:"programs,omitempty"`
	// Leader holds the lease, before the pod was made and after it was bound.
	Leader string `json:"leader,omitempty"`
}

// DefaultScheduler makes a pod that names no scheduler, waits until it is bound, and
// proves that a replaced scheduler bound it: by the name in the event, which any
// default scheduler has; by the lease, which tells whose process leads; and by the
// static pod of that process, which tells its image and what it was replaced with.
//
// Where the leader changes meanwhile it cannot be told whose the binding is: then it
// looks again, with a new pod.
func DefaultScheduler(ctx context.Context, cfg *rest.Config, o DefaultOptions) (v *DefaultResult, err error) {
	for range defaultAttempts {
		if v, err = verifyDefault(ctx, cfg, o); !errors.As(err, new(*leaderChangedError)) {
			break
		}
	}
	return v, err
}

// defaultAttempts is how often DefaultScheduler looks while leaders change. A scheduler
// that ends again and again makes them change for ever.
const defaultAttempts = 3

func verifyDefault(ctx context.Context, cfg *rest.Config, o DefaultOptions) (_ *DefaultResult, err error) {
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
	d := &defaultVerifier{o: o, v: &DefaultResult{}}
	d.verifier = &verifier{
		Options: Options{Name: corev1.DefaultSchedulerName, Namespace: metav1.NamespaceSystem, Image: o.Image, Timeout: o.Timeout, Keep: o.Keep, Log: o.Log, OnStep: o.OnStep},
		kube:    kube, retry: &kubeapi.Retrier{Log: o.Log}, v: &d.v.Result,
	}
	d.v.Scheduler, d.v.Namespace, d.v.Pod = corev1.DefaultSchedulerName, verifyPrefix+utilrand.String(5), verifyPod
	defer func() {
		if !d.made || o.Keep {
			return
		}
		cleanCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		err = errors.Join(err, d.step("clean up", func() error { return d.cleanUp(cleanCtx) }))
	}()
	return d.v, d.run(ctx)
}

// defaultVerifier makes one verification of the default scheduler.
type defaultVerifier struct {
	*verifier
	o DefaultOptions
	v *DefaultResult
}

func (d *defaultVerifier) run(ctx context.Context) error {
	leader, err := d.holder(ctx)
	if err != nil {
		return err
	}
	if err := d.chooseImage(ctx); err != nil {
		return err
	}
	var pod *corev1.Pod
	var created time.Time
	err = d.step("create a pod that names no scheduler", func() (err error) {
		pod, err = d.createPod(ctx)
		created = time.Now()
		return err
	})
	if err != nil {
		return err
	}
	err = d.step("wait until it is bound", func() error {
		waitCtx, cancel := context.WithTimeout(ctx, d.Timeout)
		defer cancel()
		bound, at, err := d.waitBound(waitCtx, pod)
		if err == nil {
			pod, d.v.Node = bound, bound.Spec.NodeName
			d.v.Seconds, d.v.MeasuredBy = duration(bound, created, at)
			return nil
		}
		if ctx.Err() == nil && errors.Is(waitCtx.Err(), context.DeadlineExceeded) {
			return d.notScheduled(pod, d.eventFinding(ctx, pod).text)
		}
		return fmt.Errorf("wait until Pod/%s/%s is bound: %w", pod.Namespace, pod.Name, err)
	})
	if err != nil {
		return err
	}
	return d.step("prove that the replacement bound it", func() error { return d.proveDefault(ctx, pod, leader) })
}

// chooseImage takes an image that the nodes have for the pod.
func (d *defaultVerifier) chooseImage(ctx context.Context) error {
	if d.Image != "" {
		return nil
	}
	pods, err := d.staticPods(ctx)
	if err != nil {
		return err
	}
	d.Image = imageOfNone
	for i := range pods {
		if c := containerOf(&pods[i]); c != nil {
			d.Image = c.Image
		}
	}
	return nil
}

// holder reads who holds the default scheduler's lease; empty where there is none.
func (d *defaultVerifier) holder(ctx context.Context) (string, error) {
	var lease *coordinationv1.Lease
	err := d.retry.Do(ctx, "read the lease "+defaultLease, func(ctx context.Context) (err error) {
		lease, err = d.kube.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, defaultLease, metav1.GetOptions{})
		return client.IgnoreNotFound(err)
	})
	if err != nil || lease == nil || lease.Spec.HolderIdentity == nil {
		return "", err
	}
	return *lease.Spec.HolderIdentity, nil
}
