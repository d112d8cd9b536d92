package matrix

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

const (
	pollInterval = 2 * time.Second
	// startGrace is the time in which no pod may run because an image cannot be pulled or pods are
	// rejected, and roomGrace because no node has room.
	startGrace = time.Minute
	roomGrace  = 10 * time.Minute
	// goneTime is the time limit for deleting a Job with its pods.
	goneTime = time.Minute
)

// Runner runs Jobs.
type Runner struct {
	kube  kubernetes.Interface
	retry *kubeapi.Retrier
	// warn reports a pod whose result is ignored.
	warn                        func(text string)
	poll, startGrace, roomGrace time.Duration
}

// newRunner returns a runner. Requests by kube should time out.
func newRunner(kube kubernetes.Interface, log *zap.Logger, warn func(text string)) *Runner {
	return &Runner{kube: kube, retry: &kubeapi.Retrier{Log: log}, warn: warn, poll: pollInterval,
		startGrace: startGrace, roomGrace: roomGrace}
}

// Run creates the Job and returns the outcomes of its simulations, by their index. A simulation
// whose pod fails has an error as outcome. onCell is called when a simulation starts, and done when
// the simulation ends. The Job is deleted in any case. If that fails, Run returns the outcomes and
// the error.
func (r *Runner) Run(ctx context.Context, j Job,
	onCell func(index int) (done func(error))) (outcomes []Outcome, err error) {
	create := r.kube.BatchV1().Jobs(j.Namespace).Create
	created, err := kubeapi.Create(ctx, r.retry, "create "+j.String(), create, j.object())
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	defer func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), goneTime)
		defer cancel()
		err = errors.Join(err, r.remove(limited, j))
	}()
	if err != nil {
		return nil, err
	}
	c := newCollection(r, j, created.UID, onCell)
	for {
		complete, err := c.update(ctx)
		if err != nil {
			return nil, err
		}
		if complete {
			return c.outcomes, nil
		}
		if err := clock.Sleep(ctx, r.poll); err != nil {
			return nil, fmt.Errorf("wait for %s: %w", j, err)
		}
	}
}

// String returns the Job's kind, namespace and name.
func (j Job) String() string { return "Job/" + j.Namespace + "/" + j.Name }

// read returns the Job, nil if there is none, and its pods.
func (r *Runner) read(ctx context.Context, j Job) (job *batchv1.Job, pods []corev1.Pod, err error) {
	job, err = kubeapi.Find(ctx, r.retry, r.kube.BatchV1().Jobs(j.Namespace).Get, "Job", j.Namespace, j.Name)
	if err != nil {
		return nil, nil, err
	}
	list, err := kubeapi.List(ctx, r.retry, "list the pods of "+j.String(),
		r.kube.CoreV1().Pods(j.Namespace).List, metav1.ListOptions{LabelSelector: ownership.LabelInstance + "=" + j.Name})
	if err != nil {
		return nil, nil, err
	}
	return job, list.Items, nil
}

// outcome reads a simulation's outcome from its pod's log.
func (r *Runner) outcome(ctx context.Context, pod *corev1.Pod, index int) (o Outcome, err error) {
	doing := "read the log of Pod/" + pod.Namespace + "/" + pod.Name
	err = r.retry.Do(ctx, doing, func(ctx context.Context) error {
		log, err := r.kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name,
			&corev1.PodLogOptions{Container: container}).Stream(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = log.Close() }() // nothing is written
		o, err = readOutcome(log, index)
		return err
	})
	return o, err
}

// rejection returns why the controller cannot create pods, or "" if it reports nothing.
func (r *Runner) rejection(ctx context.Context, j Job) string {
	events, err := r.kube.CoreV1().Events(j.Namespace).List(ctx,
		metav1.ListOptions{FieldSelector: "involvedObject.kind=Job,involvedObject.name=" + j.Name + ",type=Warning"})
	if err != nil || len(events.Items) == 0 {
		return ""
	}
	return ": " + events.Items[len(events.Items)-1].Message
}

// remove deletes the Job and waits until it and its pods are gone.
func (r *Runner) remove(ctx context.Context, j Job) error {
	first := metav1.DeletePropagationForeground
	err := r.retry.Do(ctx, "delete "+j.String(), func(ctx context.Context) error {
		return client.IgnoreNotFound(r.kube.BatchV1().Jobs(j.Namespace).Delete(ctx, j.Name,
			metav1.DeleteOptions{PropagationPolicy: &first}))
	})
	for err == nil {
		var job *batchv1.Job
		if job, _, err = r.read(ctx, j); job == nil && err == nil {
			return nil
		}
		if err == nil {
			err = clock.Sleep(ctx, r.poll)
		}
	}
	return problem.WithHint(fmt.Errorf("remove %s: %w", j, err),
		fmt.Sprintf("delete it with `kubectl -n %s delete job %s`", j.Namespace, j.Name))
}
