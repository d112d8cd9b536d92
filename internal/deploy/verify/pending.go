package verify

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

const (
	logTail     = 500 // lines that are searched
	logBytes    = 4 << 20
	shownLines  = 10
	explainTime = 20 * time.Second
	// leaseSlack is how much older than its duration a lease may be before it counts as expired: clocks differ.
	leaseSlack = 5 * time.Second
	// kubeSchedulerRole is the cluster's role of schedulers. The scheduler's identity is bound to it.
	kubeSchedulerRole = "system:kube-scheduler"
)

// finding is one observation about a Pending pod.
type finding struct {
	text string
	bad  bool // explains why the pod is Pending
}

// explainPending returns an error with everything that may keep the pod from being bound: its events, and the Deployment, lease,
// permissions and log of the scheduler.
func (r *verifier) explainPending(ctx context.Context, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, explainTime)
	defer cancel()
	findings := []finding{r.eventFinding(ctx, pod)}
	deployment, pods, err := r.deploymentFindings(ctx)
	findings = append(findings, deployment...)
	if err == nil {
		findings = append(findings, r.leaseFinding(ctx))
		findings = append(findings, r.permissionFindings(ctx)...)
	}
	e := r.notScheduled(pod, "it is Pending after %s for an unknown reason", r.Timeout)
	if first := slices.IndexFunc(findings, func(f finding) bool { return f.bad }); first >= 0 {
		e.Reason = fmt.Sprintf("it is Pending after %s: %s", r.Timeout, findings[first].text)
	}
	for _, f := range findings {
		e.Findings = append(e.Findings, f.text)
	}
	for i := range pods {
		e.Log = append(e.Log, r.logFindings(ctx, &pods[i])...)
	}
	return e
}

// eventFinding reports the last event of a scheduler about the pod.
func (r *verifier) eventFinding(ctx context.Context, pod *corev1.Pod) finding {
	events, err := r.podEvents(ctx, pod)
	if err != nil {
		return finding{text: fmt.Sprintf("events of the pod: unavailable: %v", err)}
	}
	event := lastOf(events, reasonFailedScheduling)
	if event == nil {
		return finding{text: "events of the pod: no scheduler has reported an event"}
	}
	by, _ := source(event)
	return finding{text: fmt.Sprintf("events of the pod: %s found no node for it: %s", by, strings.TrimSpace(event.Message)), bad: true}
}

// deploymentFindings reports whether the scheduler runs. It returns an error if there is nothing further to inspect.
func (r *verifier) deploymentFindings(ctx context.Context) ([]finding, []corev1.Pod, error) {
	where := r.deploymentName()
	var d *appsv1.Deployment
	err := r.retry.Do(ctx, "read "+where, func(ctx context.Context) (err error) {
		d, err = r.kube.AppsV1().Deployments(r.Namespace).Get(ctx, r.Deployment, metav1.GetOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		return []finding{{text: where + ": not found, so no scheduler of that name runs", bad: true}}, nil, err
	}
	if err != nil {
		return []finding{{text: fmt.Sprintf("%s: unavailable: %v", where, err)}}, nil, err
	}
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	findings := []finding{{
		text: fmt.Sprintf("%s: %d of %d replicas ready", where, d.Status.ReadyReplicas, want), bad: d.Status.ReadyReplicas == 0,
	}}
	pods, err := r.schedulerPods(ctx)
	if err != nil {
		return append(findings, finding{text: fmt.Sprintf("pods of the scheduler: unavailable: %v", err)}), nil, nil
	}
	for i := range pods {
		if text := podProblem(&pods[i]); text != "" {
			findings = append(findings, finding{text: text, bad: true})
		}
	}
	return findings, pods, nil
}

func (r *verifier) deploymentName() string { return "Deployment/" + r.Namespace + "/" + r.Deployment }

// podProblem returns the reason why a pod of the scheduler does not run. It is empty if the pod
// runs.
func podProblem(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		switch {
		case c.State.Waiting != nil:
			return strings.TrimSpace(fmt.Sprintf("Pod/%s/%s: %s %s", pod.Namespace, pod.Name, c.State.Waiting.Reason, c.State.Waiting.Message))
		case c.State.Terminated != nil:
			return fmt.Sprintf("Pod/%s/%s: exited with code %d", pod.Namespace, pod.Name, c.State.Terminated.ExitCode)
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return fmt.Sprintf("Pod/%s/%s: not scheduled: %s", pod.Namespace, pod.Name, condition.Message)
		}
	}
	return ""
}

// leaseFinding reports whether the scheduler has a leader.
func (r *verifier) leaseFinding(ctx context.Context) finding {
	where := r.leaseName()
	lease, err := r.lease(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return finding{text: where + ": not found, so no replica has ever become leader (or leader election is off)"}
	case err != nil:
		return finding{text: fmt.Sprintf("%s: unavailable: %v", where, err)}
	}
	return describeLease(where, lease, time.Now())
}

func (r *verifier) leaseName() string { return "Lease/" + r.Namespace + "/" + r.Deployment }

// lease reads the Lease of the scheduler's leader election.
func (r *verifier) lease(ctx context.Context) (lease *coordinationv1.Lease, err error) {
	err = r.retry.Do(ctx, "read "+r.leaseName(), func(ctx context.Context) (err error) {
		lease, err = r.kube.CoordinationV1().Leases(r.Namespace).Get(ctx, r.Deployment, metav1.GetOptions{})
		return err
	})
	return lease, err
}

func describeLease(where string, lease *coordinationv1.Lease, now time.Time) finding {
	spec := lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" {
		return finding{text: where + ": no holder, so no replica schedules", bad: true}
	}
	holder := kubeapi.HostOf(lease)
	if spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		return finding{text: where + ": held by " + holder}
	}
	age := now.Sub(spec.RenewTime.Time).Round(time.Second)
	if age > time.Duration(*spec.LeaseDurationSeconds)*time.Second+leaseSlack {
		return finding{text: fmt.Sprintf("%s: not renewed by its holder %s for %s, so no replica schedules", where, holder, age), bad: true}
	}
	return finding{text: fmt.Sprintf("%s: held by %s, renewed %s ago", where, holder, max(age, 0))}
}

// requiredPermissions returns the permissions without which a scheduler binds nothing (system:kube-scheduler of every release has
// them).
func (r *verifier) requiredPermissions() []authorizationv1.ResourceAttributes {
	return []authorizationv1.ResourceAttributes{
		{Verb: "list", Resource: "pods"}, {Verb: "watch", Resource: "pods"},
		{Verb: "list", Resource: "nodes"}, {Verb: "watch", Resource: "nodes"},
		{Verb: "create", Resource: "pods", Subresource: "binding", Namespace: r.result.Namespace},
		{Verb: "patch", Resource: "pods", Subresource: "status", Namespace: r.result.Namespace},
		{Verb: "create", Group: "events.k8s.io", Resource: "events", Namespace: r.result.Namespace},
		{Verb: "list", Group: "storage.k8s.io", Resource: "storageclasses"},
		{Verb: "create", Group: "coordination.k8s.io", Resource: "leases", Namespace: r.Namespace},
		{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: r.Namespace, Name: r.Deployment},
	}
}

// permissionFindings asks the API server which permissions the scheduler's identity lacks.
func (r *verifier) permissionFindings(ctx context.Context) []finding {
	who, err := r.identity(ctx)
	if err != nil {
		return []finding{{text: fmt.Sprintf("permissions: the identity of the scheduler is unknown: %v", err)}}
	}
	if who == nil {
		return []finding{{text: "permissions: no ClusterRoleBinding of pmk-sched refers to " + kubeSchedulerRole, bad: true}}
	}
	user, groups := account(*who)
	var findings []finding
	for _, need := range r.requiredPermissions() {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, Groups: groups, ResourceAttributes: &need}}
		var answer *authorizationv1.SubjectAccessReview
		err := r.retry.Do(ctx, "ask for permissions of "+user, func(ctx context.Context) (err error) {
			answer, err = r.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return append(findings, finding{text: fmt.Sprintf("permissions of %s: unavailable: %v", user, err)})
		}
		if !answer.Status.Allowed {
			findings = append(findings, finding{text: fmt.Sprintf("permissions: %s cannot %s %s", user, need.Verb, kubeapi.ResourceName(need)), bad: true})
		}
	}
	if len(findings) == 0 {
		findings = []finding{{text: "permissions: " + user + " has all that scheduling needs"}}
	}
	return findings
}

// identity returns the subject of our ClusterRoleBinding to the cluster's role of schedulers, or nil.
func (r *verifier) identity(ctx context.Context) (*rbacv1.Subject, error) {
	var list *rbacv1.ClusterRoleBindingList
	err := r.retry.Do(ctx, "list ClusterRoleBindings", func(ctx context.Context) (err error) {
		selector := ownership.Installed + "," + ownership.LabelInstance + "=" + r.Deployment
		list, err = r.kube.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{LabelSelector: selector})
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, binding := range list.Items {
		if binding.RoleRef.Name == kubeSchedulerRole && len(binding.Subjects) > 0 {
			return &binding.Subjects[0], nil
		}
	}
	return nil, nil
}

// account returns the user name and groups of a subject.
func account(s rbacv1.Subject) (user string, groups []string) {
	if s.Kind != rbacv1.ServiceAccountKind {
		return s.Name, []string{"system:authenticated"}
	}
	return "system:serviceaccount:" + s.Namespace + ":" + s.Name,
		[]string{"system:serviceaccounts", "system:serviceaccounts:" + s.Namespace, "system:authenticated"}
}

// logFindings returns the last warnings and errors in the log of a scheduler pod.
func (r *verifier) logFindings(ctx context.Context, pod *corev1.Pod) []string {
	lines, limit := int64(logTail), int64(logBytes)
	text, err := r.kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: defaultContainer, TailLines: &lines, LimitBytes: &limit}).DoRaw(ctx)
	if err != nil {
		return []string{fmt.Sprintf("log of Pod/%s/%s is unavailable: %v", pod.Namespace, pod.Name, err)}
	}
	return warningLines(text)
}

// warningLine matches warnings, errors and the last output of a crashing program, in klog's text (W1121 …) and JSON formats.
var warningLine = regexp.MustCompile(`^[WEF]\d{4} |"level":"(?:warn|error)"|"err":|^panic: |^Error: |^fatal `)

// warningLines returns the last lines of a log that match warningLine.
func warningLines(text []byte) []string {
	var found []string
	for line := range bytes.Lines(text) {
		if warningLine.Match(line) {
			found = append(found, string(bytes.TrimRight(line, "\r\n")))
		}
	}
	if len(found) > shownLines {
		found = found[len(found)-shownLines:]
	}
	return found
}
