package verify

import (
	"context"
	"errors"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// defaultContainer is the default scheduler's container name in static pods.
const defaultContainer = "kube-scheduler"

// DefaultOptions are options to verify the default scheduler.
type DefaultOptions struct {
	// Options without a name and a namespace.
	Options
	// Annotation is the annotation key on replaced schedulers' static pods.
	Annotation string
	// Want is the value that the annotation must have. If it is empty, any value is accepted.
	Want string
	// Unreplaced accepts a scheduler without the annotation: while nodes are replaced one after the
	// other, it may lead.
	Unreplaced bool
	// Binary is the key of the annotation with the SHA-256 of the binary that must run.
	Binary string
	// Metrics reads the scheduler's metrics on a node, if the caller can reach them. If it is nil or
	// fails, the proof goes without them.
	Metrics func(ctx context.Context, node string) (string, error)
	// Running returns the SHA-256 of the programs that run in a container on this machine. If it is
	// nil or fails, the proof goes without them.
	Running func(containerID string) ([]string, error)
}

// DefaultResult is DefaultScheduler's result.
type DefaultResult struct {
	Result
	// Image and ImageID describe the container that bound the pod. Replacement is its annotation.
	Image       string `json:"image"`
	ImageID     string `json:"imageID"`
	Replacement string `json:"replacement"`
	// Build is kubernetes_build_info from its metrics, if they could be read.
	Build string `json:"build,omitempty"`
	// Programs are the SHA-256 of the programs that its processes run, if they run on this machine.
	Programs []string `json:"programs,omitempty"`
	// Leader held the lease before the pod was created and after it was bound.
	Leader string `json:"leader,omitempty"`
}

// DefaultScheduler creates a pod that names no scheduler, waits until it is bound, and proves that
// a replaced scheduler bound it: by the name in the event, which all default schedulers share; by
// the lease, which identifies the leading process; and by that process's static pod, which shows
// its image and its replacement.
//
// If the leader changes in between, it is unknown which process bound the pod, and DefaultScheduler
// tries again with a new pod.
func DefaultScheduler(ctx context.Context, cfg *rest.Config, o DefaultOptions) (result *DefaultResult, err error) {
	for range defaultAttempts {
		if result, err = verifyDefault(ctx, cfg, o); !errors.As(err, new(*leaderChangedError)) {
			break
		}
	}
	return result, err
}

// defaultAttempts bounds the attempts while leaders change: a scheduler that crashes again and
// again never stops changing them.
const defaultAttempts = 3

func verifyDefault(ctx context.Context, cfg *rest.Config, o DefaultOptions) (*DefaultResult, error) {
	o.Name, o.Deployment, o.Namespace = corev1.DefaultSchedulerName, corev1.DefaultSchedulerName, metav1.NamespaceSystem
	d := &defaultVerifier{o: o, result: &DefaultResult{}}
	var err error
	if d.verifier, err = newVerifier(cfg, o.Options, &d.result.Result); err != nil {
		return nil, err
	}
	pods, lease, err := d.readLease(ctx)
	if err != nil {
		return d.result, err
	}
	d.chooseImage(pods)
	return d.result, d.run(ctx, procedure{
		create: "create a pod that names no scheduler", prove: "prove that the replacement bound it",
		explain: func(ctx context.Context, pod *corev1.Pod) error {
			report, err := d.explanation(ctx, pod)
			if err != nil {
				return d.notScheduled(pod, "it is Pending after %s for an unknown reason: %v", d.Timeout, err)
			}
			return d.notScheduled(pod, "it is Pending after %s: %s", d.Timeout, report.Summary)
		},
		proof: func(ctx context.Context, pod *corev1.Pod) error { return d.proveDefault(ctx, pod, holder(lease)) },
	})
}

// defaultVerifier verifies the default scheduler once.
type defaultVerifier struct {
	*verifier
	o      DefaultOptions
	result *DefaultResult
}

// chooseImage selects an image for the pod that the default schedulers' nodes have.
func (d *defaultVerifier) chooseImage(pods []corev1.Pod) {
	if d.Image != "" {
		return
	}
	d.Image = missingImage
	for i := range pods {
		if c := kubeapi.DefaultScheduler(&pods[i]); c != nil {
			d.Image = c.Image
		}
	}
}

// readLease returns default schedulers' static pods and their lease.
func (d *defaultVerifier) readLease(ctx context.Context) ([]corev1.Pod, *coordinationv1.Lease, error) {
	pods, err := d.staticPods(ctx)
	if err != nil {
		return nil, nil, err
	}
	lease, err := kubeapi.Read(ctx, d.retry, "read the lease of the default scheduler",
		func(ctx context.Context) (*coordinationv1.Lease, error) {
			return kubeapi.DefaultLease(ctx, d.kube.CoordinationV1(), pods)
		})
	return pods, lease, err
}

// holder returns a lease's holder. It is empty if there is none.
func holder(lease *coordinationv1.Lease) string {
	if lease == nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}
