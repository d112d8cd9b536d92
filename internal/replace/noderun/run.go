package noderun

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

const (
	pollInterval = time.Second
	// patience is the time that the API server may be unavailable: on PMK it is in the pod that is
	// replaced.
	patience = 5 * time.Minute
	// lateness is the time after a pod's deadline that its kubelet may take to end it, in addition to
	// the undo.
	lateness = time.Minute
	// goneTime is the time that deleting a pod may take, in addition to the undo.
	goneTime = time.Minute
)

// Runner runs tasks.
type Runner struct {
	kube  kubernetes.Interface
	retry *kubeapi.Retrier
	poll  time.Duration
}

// New returns a runner. Requests from kube should time out.
func New(kube kubernetes.Interface, log *zap.Logger) *Runner {
	return &Runner{kube: kube, retry: &kubeapi.Retrier{Patience: patience, Log: log}, poll: pollInterval}
}

// Run does a task and returns its report. It first waits until a killed run's pod has ended. The
// pod is deleted in any case: if it still runs because ctx has ended, Run waits until pmk-sched in
// it has undone its unfinished change.
func (r *Runner) Run(ctx context.Context, t Task) (report *Report, err error) {
	if err := r.clear(ctx, t); err != nil {
		return nil, err
	}
	defer func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime+goneTime)
		defer cancel()
		err = errors.Join(err, r.remove(limited, t))
	}()
	if err := r.create(ctx, t); err != nil {
		return nil, err
	}
	last, err := r.wait(ctx, t)
	if err == nil {
		report, err = last.report()
	}
	if err != nil {
		return nil, fmt.Errorf("run pmk-sched on node %s: %w", t.Node, err)
	}
	return report, nil
}

// clear removes a killed run's objects after its pod has ended: pmk-sched in the pod finishes or
// undoes its work without that run.
func (r *Runner) clear(ctx context.Context, t Task) error {
	pod, err := r.read(ctx, t)
	if err != nil || pod == nil {
		return err
	}
	if pod.DeletionTimestamp == nil && !stateOf(pod).ended {
		if _, err := r.wait(ctx, t); err != nil {
			return fmt.Errorf("wait for Pod/%s/%s of an earlier run: %w", Namespace, t.name(), err)
		}
	}
	return r.remove(ctx, t)
}

// create creates the Secret and the pod.
func (r *Runner) create(ctx context.Context, t Task) error {
	secrets := r.kube.CoreV1().Secrets(Namespace)
	err := r.retry.Do(ctx, "create Secret/"+Namespace+"/"+t.name(), func(ctx context.Context) error {
		// A Secret without a pod is left over from a run that was killed before it created the pod.
		if err := secrets.Delete(ctx, t.name(), metav1.DeleteOptions{}); client.IgnoreNotFound(err) != nil {
			return err
		}
		_, err := secrets.Create(ctx, t.Secret(), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	_, err = kubeapi.Create(ctx, r.retry, "create Pod/"+Namespace+"/"+t.name(), r.kube.CoreV1().Pods(Namespace).Create,
		t.Pod())
	return err
}

// wait waits until the pod has ended or cannot start, and returns its state.
func (r *Runner) wait(ctx context.Context, t Task) (state, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, t.Timeout+undoTime+lateness,
		problem.Errorf("check that its kubelet runs; pmk-sched in the pod finishes or undoes its work without this run",
			"the pod did not end in time"))
	defer cancel()
	var failing time.Time
	for {
		pod, err := r.read(ctx, t)
		if err != nil {
			return state{}, explainEnd(ctx, err)
		}
		if pod == nil {
			return state{}, errors.New("the pod was deleted by another program")
		}
		s := stateOf(pod)
		if s.failure == "" {
			failing = time.Time{}
		} else if failing.IsZero() {
			failing = time.Now()
		}
		if s.ended || s.failure != "" && time.Since(failing) >= s.grace {
			return s, nil
		}
		if err := clock.Sleep(ctx, r.poll); err != nil {
			return state{}, explainEnd(ctx, err)
		}
	}
}

// explainEnd returns why a wait ended, if it took too long.
func explainEnd(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) && ctx.Err() != nil {
		return cause
	}
	return err
}

// remove deletes the pod and the Secret, and waits until the pod is gone.
func (r *Runner) remove(ctx context.Context, t Task) error {
	err := r.retry.Do(ctx, "delete Pod/"+Namespace+"/"+t.name(), func(ctx context.Context) error {
		return errors.Join(
			client.IgnoreNotFound(r.kube.CoreV1().Pods(Namespace).Delete(ctx, t.name(), metav1.DeleteOptions{})),
			client.IgnoreNotFound(r.kube.CoreV1().Secrets(Namespace).Delete(ctx, t.name(), metav1.DeleteOptions{})),
		)
	})
	for err == nil {
		var pod *corev1.Pod
		if pod, err = r.read(ctx, t); pod == nil && err == nil {
			return nil
		}
		if err == nil {
			err = clock.Sleep(ctx, r.poll)
		}
	}
	return problem.WithHint(fmt.Errorf("remove Pod/%s/%s: %w", Namespace, t.name(), err),
		fmt.Sprintf("delete it with `kubectl -n %s delete pod,secret %s`", Namespace, t.name()))
}

// read returns the pod, or nil if it does not exist.
func (r *Runner) read(ctx context.Context, t Task) (*corev1.Pod, error) {
	return kubeapi.Find(ctx, r.retry, r.kube.CoreV1().Pods(Namespace).Get, "Pod", Namespace, t.name())
}
