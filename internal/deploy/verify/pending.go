package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/explain"
	"github.com/pmk-sched/pmk-sched/internal/cluster/explain/collect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
)

const (
	logTail     = 500 // lines that are searched
	logBytes    = 4 << 20
	shownLines  = 10
	explainTime = 20 * time.Second
	// kubeSchedulerRole is the cluster's role for schedulers. The scheduler's identity is bound to it.
	kubeSchedulerRole = "system:kube-scheduler"
)

// explainPending returns an error with everything that may keep the pod from being bound: the pod's
// explanation, and the pods, permissions and log of its scheduler.
func (r *verifier) explainPending(ctx context.Context, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, explainTime)
	defer cancel()
	report, err := r.explanation(ctx, pod)
	if err != nil {
		return r.notScheduled(pod, "it is Pending after %s for an unknown reason: %v", r.Timeout, err)
	}
	e := r.notScheduled(pod, "")
	for _, f := range report.Findings {
		e.Findings = append(e.Findings, f.Text)
	}
	reason := report.Findings[0]
	if reason.Cause != explain.NoScheduler {
		problems := r.schedulerProblems(ctx, e, report.Message == "")
		if reason.Cause == explain.NotTried && len(problems) > 0 {
			reason.Text = problems[0]
		}
	}
	e.Reason = fmt.Sprintf("it is Pending after %s: %s", r.Timeout, reason.Text)
	if report.Message != "" {
		e.Findings = append(e.Findings, "message of the scheduler: "+report.Message)
	}
	e.Findings = append(e.Findings, report.Unknown...)
	return e
}

// explanation explains why the pod has no node. It has at least one finding.
func (r *verifier) explanation(ctx context.Context, pod *corev1.Pod) (*explain.Report, error) {
	input, err := collect.Pod(ctx, r.cfg, pod.Namespace, pod.Name, r.Log)
	if err != nil {
		return nil, err
	}
	report := explain.Pod(*input)
	if len(report.Findings) == 0 {
		return nil, errors.New("neither the pod nor its events have one")
	}
	return report, nil
}

// schedulerProblems adds to e the problems from the scheduler's pods and their logs. If the
// scheduler has not tried the pod, it adds the missing permissions. It returns the problems.
func (r *verifier) schedulerProblems(ctx context.Context, e *NotScheduledError, untried bool) (problems []string) {
	pods, err := r.schedulerPods(ctx)
	if err != nil {
		e.Findings = append(e.Findings, fmt.Sprintf("pods of the scheduler: unavailable: %v", err))
	}
	for i := range pods {
		if why := podstatus.WhyNotReady(&pods[i]); why != "" {
			problems = append(problems, fmt.Sprintf("Pod/%s/%s: %s", pods[i].Namespace, pods[i].Name, why))
		}
	}
	if untried {
		missing, err := r.missingPermissions(ctx)
		problems = append(problems, missing...)
		if err != nil {
			e.Findings = append(e.Findings, err.Error())
		}
	}
	e.Findings = append(e.Findings, problems...)
	for i := range pods {
		e.Log = append(e.Log, r.logFindings(ctx, &pods[i])...)
	}
	return problems
}

// requiredPermissions returns the permissions without which a scheduler binds nothing
// (system:kube-scheduler has them in every release).
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

// missingPermissions asks the API server which permissions the scheduler's identity lacks.
func (r *verifier) missingPermissions(ctx context.Context) (missing []string, err error) {
	who, err := r.identity(ctx)
	if err != nil {
		return nil, fmt.Errorf("permissions: the identity of the scheduler is unknown: %w", err)
	}
	if who == nil {
		return []string{"permissions: no ClusterRoleBinding of pmk-sched refers to " + kubeSchedulerRole}, nil
	}
	user, groups := account(*who)
	for _, need := range r.requiredPermissions() {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user,
			Groups: groups, ResourceAttributes: &need}}
		answer, err := kubeapi.Create(ctx, r.retry, "ask for permissions of "+user,
			r.kube.AuthorizationV1().SubjectAccessReviews().Create, review)
		if err != nil {
			return missing, fmt.Errorf("permissions of %s: unavailable: %w", user, err)
		}
		if !answer.Status.Allowed {
			missing = append(missing, fmt.Sprintf("permissions: %s cannot %s %s", user, need.Verb, kubeapi.ResourceName(need)))
		}
	}
	return missing, nil
}

// identity returns the subject in our ClusterRoleBinding to the cluster's role for schedulers, or
// nil.
func (r *verifier) identity(ctx context.Context) (*rbacv1.Subject, error) {
	selector := ownership.Installed + "," + ownership.LabelInstance + "=" + r.Deployment
	list, err := kubeapi.List(ctx, r.retry, "list ClusterRoleBindings",
		r.kube.RbacV1().ClusterRoleBindings().List, metav1.ListOptions{LabelSelector: selector})
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

// account returns a subject's user name and groups.
func account(s rbacv1.Subject) (user string, groups []string) {
	if s.Kind != rbacv1.ServiceAccountKind {
		return s.Name, []string{"system:authenticated"}
	}
	return "system:serviceaccount:" + s.Namespace + ":" + s.Name,
		[]string{"system:serviceaccounts", "system:serviceaccounts:" + s.Namespace, "system:authenticated"}
}

// logFindings returns the last warnings and errors in a scheduler pod's log.
func (r *verifier) logFindings(ctx context.Context, pod *corev1.Pod) []string {
	lines, limit := int64(logTail), int64(logBytes)
	text, err := r.kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name,
		&corev1.PodLogOptions{Container: defaultContainer, TailLines: &lines, LimitBytes: &limit}).DoRaw(ctx)
	if err != nil {
		return []string{fmt.Sprintf("log of Pod/%s/%s is unavailable: %v", pod.Namespace, pod.Name, err)}
	}
	return warningLines(text)
}

// warningLine matches warnings, errors and a crashing program's last output, in klog's text (W1121
// …) and JSON formats.
var warningLine = regexp.MustCompile(`^[WEF]\d{4} |"level":"(?:warn|error)"|"err":|^panic: |^Error: |^fatal `)

// warningLines returns a log's last lines that match warningLine.
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
