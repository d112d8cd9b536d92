package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/kubeapi"
)

// The default scheduler's lease (pkg/scheduler/apis/config/types.go), and the name
// of its container in static pods.
const (
	defaultLease     = "kube-scheduler"
	defaultContainer = "kube-scheduler"
)

// DefaultOptions says how to verify the default scheduler. Options of
// [VerifyOptions] have the same meaning.
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

// DefaultVerification is what VerifyDefault saw.
type DefaultVerification struct {
	Verification
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

// VerifyDefault makes a pod that names no scheduler, waits until it is bound, and
// proves that a replaced scheduler bound it: by the name in the event, which any
// default scheduler has; by the lease, which tells whose process leads; and by the
// static pod of that process, which tells its image and what it was replaced with.
func VerifyDefault(ctx context.Context, cfg *rest.Config, o DefaultOptions) (_ *DefaultVerification, err error) {
	kube, _, err := clients(cfg, o.Log)
	if err != nil {
		return nil, err
	}
	if o.Timeout <= 0 {
		o.Timeout = verifyTimeout
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	d := &defaultVerifier{o: o, v: &DefaultVerification{}}
	d.verifier = &verifier{
		VerifyOptions: VerifyOptions{Name: corev1.DefaultSchedulerName, Namespace: metav1.NamespaceSystem, Image: o.Image, Timeout: o.Timeout, Keep: o.Keep, Log: o.Log, OnStep: o.OnStep},
		kube:          kube, retry: &kubeapi.Retrier{Log: o.Log}, v: &d.v.Verification,
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
	v *DefaultVerification
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
		return ignoreNotFound(err)
	})
	if err != nil || lease == nil || lease.Spec.HolderIdentity == nil {
		return "", err
	}
	return *lease.Spec.HolderIdentity, nil
}

// proveDefault tells whose the binding is.
func (d *defaultVerifier) proveDefault(ctx context.Context, pod *corev1.Pod, leader string) error {
	event, err := d.scheduledEvent(ctx, pod)
	if err != nil {
		return err
	}
	if d.v.BoundBy, d.v.Instance = source(event); d.v.BoundBy != corev1.DefaultSchedulerName {
		return d.notScheduled(pod, fmt.Sprintf("it was bound by another scheduler: %q", d.v.BoundBy))
	}
	now, err := d.holder(ctx)
	if err != nil {
		return err
	}
	if d.v.Leader = now; now != leader {
		return d.notScheduled(pod, fmt.Sprintf("the leader changed from %q to %q meanwhile, so that it cannot be told which of them bound it: verify again", leader, now))
	}
	if d.v.Instance == "" {
		d.v.Instance = now
		d.note("the event does not tell which process it was: the instance is the holder of the lease, before and after")
	}
	by, err := d.podOf(ctx, now)
	if err != nil {
		return err
	}
	if by == nil {
		return d.notScheduled(pod, fmt.Sprintf("no static pod is known for the leader %q", now))
	}
	return d.judgePod(ctx, pod, by)
}

// judgePod compares the static pod that bound the pod with what it has to be.
func (d *defaultVerifier) judgePod(ctx context.Context, pod, by *corev1.Pod) error {
	d.v.SchedulerPod = by.Namespace + "/" + by.Name
	d.v.Replacement = by.Annotations[d.o.Annotation]
	for _, status := range by.Status.ContainerStatuses {
		if status.Name == defaultContainer {
			d.v.Image, d.v.ImageID = status.Image, status.ImageID
			d.runningProgram(status.ContainerID)
		}
	}
	if d.o.Metrics != nil {
		if text, err := d.o.Metrics(ctx, by.Spec.NodeName); err == nil {
			d.v.Build = buildInfo(text)
		} else {
			d.note("its metrics could not be read: %v", err)
		}
	}
	switch {
	case d.v.Replacement == "":
		return d.notScheduled(pod, fmt.Sprintf("it was bound by the default scheduler of node %s, which is not replaced (image %s)", by.Spec.NodeName, d.v.Image))
	case len(d.v.Programs) > 0 && by.Annotations[d.o.Binary] != "" && !slices.Contains(d.v.Programs, by.Annotations[d.o.Binary]):
		return d.notScheduled(pod, fmt.Sprintf("the process on node %s runs another program (SHA-256 %s) than the one it was replaced with (%s)", by.Spec.NodeName, strings.Join(d.v.Programs, ", "), by.Annotations[d.o.Binary]))
	case d.o.Want != "" && d.v.Replacement != d.o.Want:
		return d.notScheduled(pod, fmt.Sprintf("it was bound by replacement %s on node %s, not by %s", d.v.Replacement, by.Spec.NodeName, d.o.Want))
	}
	return nil
}

// runningProgram asks this machine which program the container runs.
func (d *defaultVerifier) runningProgram(containerID string) {
	if d.o.Running == nil {
		return
	}
	_, id, _ := strings.Cut(containerID, "://")
	programs, err := d.o.Running(id)
	if err != nil {
		d.note("the program of the running process could not be looked at: %v", err)
		return
	}
	d.v.Programs = programs
}

// buildInfo is the line of the metrics in which a program says what it was built from
// (k8s.io/component-base/metrics/version.go).
func buildInfo(metrics string) string {
	for _, line := range strings.Split(metrics, "\n") {
		if strings.HasPrefix(line, "kubernetes_build_info{") {
			return line
		}
	}
	return ""
}

// podOf finds the static pod of the process that holds the lease: by its host name,
// or the only one there is.
func (d *defaultVerifier) podOf(ctx context.Context, holder string) (*corev1.Pod, error) {
	pods, err := d.staticPods(ctx)
	if err != nil {
		return nil, err
	}
	if len(pods) == 1 {
		return &pods[0], nil
	}
	host, _, _ := strings.Cut(holder, "_")
	for i := range pods {
		node, err := d.kube.CoreV1().Nodes().Get(ctx, pods[i].Spec.NodeName, metav1.GetOptions{})
		if err != nil {
			return nil, kubeapi.Explain("read Node/"+pods[i].Spec.NodeName, err)
		}
		for _, address := range node.Status.Addresses {
			if address.Address == host || node.Name == host {
				return &pods[i], nil
			}
		}
	}
	return nil, nil
}

// staticPods are the mirror pods with a default scheduler in them.
func (d *defaultVerifier) staticPods(ctx context.Context) ([]corev1.Pod, error) {
	var list *corev1.PodList
	err := d.retry.Do(ctx, "list pods in kube-system", func(ctx context.Context) (err error) {
		list, err = d.kube.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
		return err
	})
	if err != nil {
		return nil, err
	}
	var pods []corev1.Pod
	for i := range list.Items {
		pod := &list.Items[i]
		if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror && containerOf(pod) != nil {
			pods = append(pods, *pod)
		}
	}
	return pods, nil
}

func containerOf(pod *corev1.Pod) *corev1.Container {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == defaultContainer {
			return &pod.Spec.Containers[i]
		}
	}
	return nil
}

func (d *defaultVerifier) notScheduled(pod *corev1.Pod, reason string) error {
	return &NotScheduledError{Scheduler: corev1.DefaultSchedulerName, Pod: pod.Namespace + "/" + pod.Name, Node: pod.Spec.NodeName, Reason: reason}
}
