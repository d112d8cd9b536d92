package matrix

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
)

// readings is the number of times that an incomplete pod log is read: a container runtime may write
// its end late.
const readings = 3

// collection collects a Job's outcomes as they arrive.
type collection struct {
	r   *Runner
	job Job
	// uid is the Job's UID, or empty if it is not known yet.
	uid      types.UID
	ignored  map[types.UID]bool // pods that the Job did not create
	onCell   func(index int) (done func(error))
	outcomes []Outcome
	cells    []cellState
	// active is when a pod was last seen to run or to have ended.
	active time.Time
}

// cellState is a simulation's state.
type cellState struct {
	collected bool
	// done ends the simulation's step. It is nil if the simulation has not started.
	done     func(error)
	failed   map[types.UID]bool // pods
	readings int
	// seen is the reason why its pod does not run, or nil if that is unknown.
	seen *obstacle
}

// obstacle is a reason why a pod does not run, with a hint. It may go away.
type obstacle struct {
	text, hint string
	grace      time.Duration
}

func newCollection(r *Runner, j Job, uid types.UID, onCell func(int) func(error)) *collection {
	c := &collection{r: r, job: j, uid: uid, ignored: map[types.UID]bool{}, onCell: onCell,
		outcomes: make([]Outcome, j.Cells), cells: make([]cellState, j.Cells), active: time.Now()}
	for i := range c.cells {
		c.cells[i].failed = map[types.UID]bool{}
	}
	return c
}

// update reads the Job and its pods once, and reports whether every simulation has an outcome.
func (c *collection) update(ctx context.Context) (complete bool, err error) {
	job, pods, err := c.r.read(ctx, c.job)
	if err != nil {
		return false, err
	}
	job, pods = c.ownOnly(job, pods)
	for i := range c.cells {
		c.cells[i].seen = nil
	}
	unread := map[int]bool{}
	for i := range pods {
		index, err := strconv.Atoi(pods[i].Annotations[batchv1.JobCompletionIndexAnnotation])
		if err != nil || index < 0 || index >= len(c.cells) || c.cells[index].collected {
			continue
		}
		if err := c.pod(ctx, &pods[i], index); err != nil {
			return false, err
		}
		if pods[i].Status.Phase == corev1.PodSucceeded {
			unread[index] = true
		}
	}
	if ended := endOf(job); ended != "" {
		c.giveUp(func(i int) error {
			if unread[i] {
				return nil // it is read again
			}
			return fmt.Errorf("%s: %s", c.job, ended)
		})
	} else {
		c.checkProgress(ctx, len(pods))
	}
	return !slices.ContainsFunc(c.cells, func(s cellState) bool { return !s.collected }), nil
}

// ownOnly returns the Job, or nil if another one has its name, and its pods. A user who may create
// pods in the namespace can give them a simulation's labels and index.
func (c *collection) ownOnly(job *batchv1.Job, pods []corev1.Pod) (*batchv1.Job, []corev1.Pod) {
	if c.uid == "" && job != nil { // the answer to its creation was lost
		c.uid = job.UID
	}
	if job != nil && job.UID != c.uid {
		job = nil
	}
	var own []corev1.Pod
	for i := range pods {
		owner := metav1.GetControllerOfNoCopy(&pods[i])
		switch {
		case owner != nil && owner.UID == c.uid:
			own = append(own, pods[i])
		case !c.ignored[pods[i].UID]:
			c.ignored[pods[i].UID] = true
			c.r.warn(fmt.Sprintf("pod %s/%s has the label of %s, which did not create it: its result is ignored",
				pods[i].Namespace, pods[i].Name, c.job))
		}
	}
	return job, own
}

// pod evaluates a pod for a simulation without an outcome.
func (c *collection) pod(ctx context.Context, pod *corev1.Pod, index int) error {
	cell := &c.cells[index]
	switch pod.Status.Phase {
	case corev1.PodRunning:
		c.start(index)
	case corev1.PodSucceeded:
		c.start(index)
		outcome, err := c.r.outcome(ctx, pod, index)
		if ctx.Err() != nil || errors.As(err, new(*kubeapi.ForbiddenError)) {
			return err
		}
		if cell.readings++; err == nil || cell.readings == readings {
			if err != nil {
				outcome = newOutcome(nil, err)
			}
			c.collect(index, outcome)
		}
	case corev1.PodFailed:
		c.start(index)
		cell.failed[pod.UID] = true
		if len(cell.failed) >= attempts {
			c.collect(index, newOutcome(nil, podError(pod)))
		}
	default:
		cell.seen = c.r.obstacleOf(pod)
	}
	return nil
}

func (c *collection) start(index int) {
	c.active = time.Now()
	if c.cells[index].done == nil {
		c.cells[index].done = c.onCell(index)
	}
}

func (c *collection) collect(index int, o Outcome) {
	cell := &c.cells[index]
	cell.collected, c.outcomes[index] = true, o
	if cell.done != nil {
		cell.done(o.err())
	}
}

// giveUp ends the simulations without an outcome for which there is an error.
func (c *collection) giveUp(why func(index int) error) {
	for i := range c.cells {
		if c.cells[i].collected {
			continue
		}
		if err := why(i); err != nil {
			c.collect(i, newOutcome(nil, err))
		}
	}
}

// checkProgress gives up if no pod has run for too long.
func (c *collection) checkProgress(ctx context.Context, pods int) {
	waited := time.Since(c.active)
	if waited < c.r.startGrace {
		return
	}
	first := &obstacle{text: "its controller creates no pod"}
	if pods == 0 {
		first.text += c.r.rejection(ctx, c.job)
		first.hint = fmt.Sprintf("check quotas and admission of namespace %s, and that kube-controller-manager runs",
			c.job.Namespace)
	}
	if i := slices.IndexFunc(c.cells, func(cell cellState) bool { return !cell.collected && cell.seen != nil }); i >= 0 {
		first = c.cells[i].seen
	}
	if waited < first.grace {
		return
	}
	c.giveUp(func(int) error {
		return problem.Errorf(first.hint, "no pod of %s has run for %s: %s", c.job, waited.Round(time.Second), first.text)
	})
}

// endOf returns why a Job creates no more pods, or "" if it may create more.
func endOf(job *batchv1.Job) string {
	if job == nil {
		return "it was deleted by another program"
	}
	for _, condition := range job.Status.Conditions {
		switch {
		case condition.Status != corev1.ConditionTrue:
		case condition.Type == batchv1.JobFailed:
			return fmt.Sprintf("it failed: %s: %s", condition.Reason, condition.Message)
		case condition.Type == batchv1.JobComplete:
			return "the pod was deleted before its log was read"
		}
	}
	return ""
}

// obstacleOf returns why a pod does not run.
func (r *Runner) obstacleOf(pod *corev1.Pod) *obstacle {
	if message, ok := podstatus.Unschedulable(pod); ok {
		return &obstacle{
			grace: r.roomGrace, text: fmt.Sprintf("no node accepts pod %s: %s", pod.Name,
				message), hint: "make room, or lower --parallel",
		}
	}
	if c := podstatus.NotRunning(pod); c != nil && podstatus.Classify(c.Reason).Preventing() {
		return &obstacle{
			text: fmt.Sprintf("image %s does not start on node %s: %s: %s", c.Image, pod.Spec.NodeName, c.Reason, c.Message),
			hint: "every node has to pull the image from its registry (--push), or only the node that has it may run the pods " +
				"(--load and --node)",
		}
	}
	return &obstacle{grace: r.roomGrace, text: fmt.Sprintf("pod %s has not started on node %q", pod.Name,
		pod.Spec.NodeName), hint: "check that the kubelet of the node runs"}
}

// podError returns why a pod failed.
func podError(pod *corev1.Pod) error {
	if c := podstatus.NotRunning(pod); c != nil && c.ExitCode != 0 {
		hint := ""
		if c.Reason == "OOMKilled" {
			hint = "the node ran out of memory: lower --parallel, or use nodes with more memory"
		}
		return problem.Errorf(hint, "pod %s on node %s failed %d times: exit code %d (%s) %s",
			pod.Name, pod.Spec.NodeName, attempts, c.ExitCode, c.Reason, c.Message)
	}
	return fmt.Errorf("pod %s on node %s failed %d times: %s %s", pod.Name, pod.Spec.NodeName, attempts, pod.Status.Reason,
		pod.Status.Message)
}
