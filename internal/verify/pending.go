package verify

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/kubeapi"
)

const (
	logTail     = 500 // lines that are searched for warnings and errors
	logBytes    = 4 << 20
	shownLines  = 10
	explainTime = 20 * time.Second
	// leaseSlack is how much older than its own duration a lease may be before nobody holds it: clocks differ.
	leaseSlack = 5 * time.Second
	// kubeSchedulerRole is the cluster's own role of schedulers; whoever is bound to it is who our scheduler is.
	kubeSchedulerRole = "system:kube-scheduler"
)

// finding is one thing that was looked at to explain a Pending pod.
type finding struct {
	text string
	bad  bool // it explains why the pod is Pending
}

// explainPending looks at everything between the pod and its binding: the pod's own events, the scheduler's Deployment, its lease, its
// permissions, its log.
func (r *verifier) explainPending(ctx context.Context, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, explainTime)
	defer cancel()
	e := &NotScheduledError{Scheduler: r.Name, Pod: pod.Namespace + "/" + pod.Name}
	findings := []finding{r.eventFinding(ctx, pod)}
	deployment, pods, err := r.deploymentFindings(ctx)
	findings = append(findings, deployment...)
	if err == nil {
		findings = append(findings, r.leaseFinding(ctx))
		findings = append(findings, r.permissionFindings(ctx)...)
	}
	e.Reason = fmt.Sprintf("it is Pending after %s, and nothing that was looked at tells why", r.Timeout)
	for i := len(findings) - 1; i >= 0; i-- {
		if findings[i].bad {
			e.Reason = fmt.Sprintf("it is Pending after %s: %s", r.Timeout, findings[i].text)
		}
	}
	for _, f := range findings {
		e.Findings = append(e.Findings, f.text)
	}
	for i := range pods {
		e.Log = append(e.Log, r.logFindings(ctx, &pods[i])...)
	}
	return e
}

// eventFinding tells what a scheduler said of the pod.
func (r *verifier) eventFinding(ctx context.Context, pod *corev1.Pod) finding {
	events, err := r.podEvents(ctx, pod)
	if err != nil {
		return finding{text: fmt.Sprintf("events of the pod: cannot be read: %v", err)}
	}
	event := lastOf(events, reasonFailedScheduling)
	if event == nil {
		return finding{text: "events of the pod: no scheduler has said anything about it"}
	}
	by, _ := source(event)
	return finding{text: fmt.Sprintf("events of the pod: %s found no node for it: %s", by, strings.TrimSpace(event.Message)), bad: true}
}

// deploymentFindings tells whether the scheduler runs. The error means that there is nothing further to look at.
func (r *verifier) deploymentFindings(ctx context.Context) ([]finding, []corev1.Pod, error) {
	where := r.deploymentName()
	var d *appsv1.Deployment
	err := r.retry.Do(ctx, "read "+where, func(ctx context.Context) (err error) {
		d, err = r.kube.AppsV1().Deployments(r.Namespace).Get(ctx, r.Name, metav1.GetOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		return []finding{{text: where + ": is not there, so no scheduler of that name runs", bad: true}}, nil, err
	}
	if err != nil {
		return []finding{{text: fmt.Sprintf("%s: cannot be read: %v", where, err)}}, nil, err
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
		return append(findings, finding{text: fmt.Sprintf("pods of the scheduler: cannot be listed: %v", err)}), nil, nil
	}
	for i := range pods {
		if text := podTrouble(&pods[i]); text != "" {
			findings = append(findings, finding{text: text, bad: true})
		}
	}
	return findings, pods, nil
}

func (r *verifier) deploymentName() string { return "Deployment/" + r.Namespace + "/" + r.Name }

// podTrouble says what keeps a pod of the scheduler from running; empty if it runs.
func podTrouble(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		switch {
		case c.State.Waiting != nil:
			return strings.TrimSpace(fmt.Sprintf("Pod/%s/%s: %s %s", pod.Namespace, pod.Name, c.State.Waiting.Reason, c.State.Waiting.Message))
		case c.State.Terminated != nil:
			return fmt.Sprintf("Pod/%s/%s: ended with exit code %d", pod.Namespace, pod.Name, c.State.Terminated.ExitCode)
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return fmt.Sprintf("Pod/%s/%s: itself has no node: %s", pod.Namespace, pod.Name, condition.Message)
		}
	}
	return ""
}

// leaseFinding tells whether a leader is there.
func (r *verifier) leaseFinding(ctx context.Context) finding {
	where := r.leaseName()
	lease, err := r.lease(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return finding{text: where + ": is not there, so no replica has ever become leader (or leader election is off)"}
	case err != nil:
		return finding{text: fmt.Sprintf("%s: cannot be read: %v", where, err)}
	}
	return judgeLease(where, lease, time.Now())
}

func (r *verifier) leaseName() string { return "Lease/" + r.Namespace + "/" + r.Name }

// lease reads the Lease of the scheduler's leader election.
func (r *verifier) lease(ctx context.Context) (lease *coordinationv1.Lease, err error) {
	err = r.retry.Do(ctx, "read "+r.leaseName(), func(ctx context.Context) (err error) {
		lease, err = r.kube.CoordinationV1().Leases(r.Namespace).Get(ctx, r.Name, metav1.GetOptions{})
		return err
	})
	return lease, err
}

func judgeLease(where string, lease *coordinationv1.Lease, now time.Time) finding {
	spec := lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" {
		return finding{text: where + ": nobody holds it, so no replica schedules", bad: true}
	}
	holder, _, _ := strings.Cut(*spec.HolderIdentity, "_")
	if spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		return finding{text: where + ": held by " + holder}
	}
	age := now.Sub(spec.RenewTime.Time).Round(time.Second)
	if age > time.Duration(*spec.LeaseDurationSeconds)*time.Second+leaseSlack {
		return finding{text: fmt.Sprintf("%s: its holder %s has not renewed it for %s, so no replica schedules", where, holder, age), bad: true}
	}
	return finding{text: fmt.Sprintf("%s: held by %s, renewed %s ago", where, holder, max(age, 0))}
}

// schedulerNeeds are the permissions without which a scheduler binds nothing (system:kube-scheduler of every release has them).
func (r *verifier) schedulerNeeds() []authorizationv1.ResourceAttributes {
	return []authorizationv1.ResourceAttributes{
		{Verb: "list", Resource: "pods"}, {Verb: "watch", Resource: "pods"},
		{Verb: "list", Resource: "nodes"}, {Verb: "watch", Resource: "nodes"},
		{Verb: "create", Resource: "pods", Subresource: "binding", Namespace: r.v.Namespace},
		{Verb: "patch", Resource: "pods", Subresource: "status", Namespace: r.v.Namespace},
		{Verb: "create", Group: "events.k8s.io", Resource: "events", Namespace: r.v.Namespace},
		{Verb: "list", Group: "storage.k8s.io", Resource: "storageclasses"},
		{Verb: "create", Group: "coordination.k8s.io", Resource: "leases", Namespace: r.Namespace},
		{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: r.Namespace, Name: r.Name},
	}
}

// permissionFindings asks the API server what the scheduler's identity may not do.
func (r *verifier) permissionFindings(ctx context.Context) []finding {
	who, err := r.identity(ctx)
	if err != nil {
		return []finding{{text: fmt.Sprintf("permissions: who the scheduler is could not be told: %v", err)}}
	}
	if who == nil {
		return []finding{{text: "permissions: no ClusterRoleBinding of ours binds anybody to " + kubeSchedulerRole, bad: true}}
	}
	user, groups := account(*who)
	var findings []finding
	for _, need := range r.schedulerNeeds() {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, Groups: groups, ResourceAttributes: &need}}
		err := r.retry.Do(ctx, "ask for permissions of "+user, func(ctx context.Context) (err error) {
			review, err = r.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return append(findings, finding{text: fmt.Sprintf("permissions of %s: cannot be asked: %v", user, err)})
		}
		if !review.Status.Allowed {
			findings = append(findings, finding{text: fmt.Sprintf("permissions: %s may not %s %s", user, need.Verb, kubeapi.ResourceName(need)), bad: true})
		}
	}
	if len(findings) == 0 {
		findings = []finding{{text: "permissions: " + user + " may do all that scheduling needs"}}
	}
	return findings
}

// identity returns who our ClusterRoleBinding to the cluster's role of schedulers names, or nil.
func (r *verifier) identity(ctx context.Context) (*rbacv1.Subject, error) {
	var list *rbacv1.ClusterRoleBindingList
	err := r.retry.Do(ctx, "list ClusterRoleBindings", func(ctx context.Context) (err error) {
		selector := kubeapi.LabelManagedBy + "=" + kubeapi.ManagedBy + "," + kubeapi.LabelInstance + "=" + r.Name
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

// account returns the user name and groups that the API server knows a subject by.
func account(s rbacv1.Subject) (user string, groups []string) {
	if s.Kind != rbacv1.ServiceAccountKind {
		return s.Name, []string{"system:authenticated"}
	}
	return "system:serviceaccount:" + s.Namespace + ":" + s.Name,
		[]string{"system:serviceaccounts", "system:serviceaccounts:" + s.Namespace, "system:authenticated"}
}

// logFindings returns the last lines of a scheduler pod's log that warn or complain.
func (r *verifier) logFindings(ctx context.Context, pod *corev1.Pod) []string {
	lines, limit := int64(logTail), int64(logBytes)
	text, err := r.kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{TailLines: &lines, LimitBytes: &limit}).DoRaw(ctx)
	if err != nil {
		return []string{fmt.Sprintf("log of Pod/%s/%s cannot be read: %v", pod.Namespace, pod.Name, err)}
	}
	return complaintsIn(text)
}

// complaint recognises warnings, errors and the last words of a program that ends, in klog's text (W1121 …) and JSON forms.
var complaintLine = regexp.MustCompile(`^[WEF]\d{4} |"level":"(?:warn|error)"|"err":|^panic: |^Error: |^fatal `)

func complaintsIn(text []byte) []string {
	var found []string
	for line := range bytes.Lines(text) {
		if complaintLine.Match(line) {
			found = append(found, string(bytes.TrimRight(line, "\r\n")))
		}
	}
	if len(found) > shownLines {
		found = found[len(found)-shownLines:]
	}
	return found
}
