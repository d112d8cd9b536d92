// Package explain explains a pending pod or a pod's placement from objects that were read before.
// It does no I/O; package collect reads the objects.
package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
)

// Input is the cluster state that explains a pod.
type Input struct {
	Namespace, Name string
	// Pod is nil if it does not exist.
	Pod *corev1.Pod
	// Events are the pod's events or, without a pod, the events about workloads that may not create
	// it. The latest event is the first.
	Events []corev1.Event
	// Ended are events about pods that have ended, the latest first: a former pod with the pod's name
	// or, if the pod does not exist, also pods in a workload with that name.
	Ended []corev1.Event
	Nodes []corev1.Node
	// Usage is the resource usage of the pods on a node, by the node's name.
	Usage map[string]*Usage
	// Claims are the claims for the pod's volumes, in the volumes' order.
	Claims []Claim
	// Classes are the cluster's StorageClasses.
	Classes []storagev1.StorageClass
	// Schedulers are the cluster's schedulers.
	Schedulers []Scheduler
	// Processes are running containers that may be a scheduler with another name.
	Processes []Process
	// Unknown has a message for each object kind that could not be read.
	Unknown []string
	Now     time.Time
}

// Finding is one reason.
type Finding struct {
	Cause Cause `json:"cause"`
	// Resource is the insufficient resource: cpu, memory, ….
	Resource string `json:"resource,omitempty"`
	// By is the plugin or extender that decided it.
	By string `json:"by,omitempty"`
	// Nodes is the number of nodes that it applies to. It is 0 if it does not depend on the node.
	Nodes int `json:"nodes,omitempty"`
	// Examples are some of these nodes.
	Examples []string `json:"examples,omitempty"`
	Text     string   `json:"text"`
	// Fix is a change that would make the pod fit.
	Fix string `json:"fix,omitempty"`

	// excluded is set if the pod's node selector excludes these nodes too.
	excluded bool
}

// Pod states.
const (
	Pending = "pending"
	Bound   = "scheduled"
	Missing = "missing"
)

// Report explains a pod.
type Report struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	// State is one of Pending, Bound and Missing.
	State     string `json:"state"`
	Scheduler string `json:"scheduler,omitempty"`
	// Routed is set if the pod did not name the scheduler itself: a route gave it.
	Routed   bool   `json:"routed,omitempty"`
	Priority int32  `json:"priority"`
	Node     string `json:"node,omitempty"`
	// Seconds is the pod's age.
	Seconds int64 `json:"seconds"`
	// Nodes is the number of nodes in the cluster.
	Nodes int `json:"nodes"`
	// Summary is the explanation in a sentence; Findings are all reasons, the most important one
	// first.
	Summary  string    `json:"summary"`
	Findings []Finding `json:"findings"`
	// Message is the complete message from the scheduler that last tried to place the pod, if it is
	// pending.
	Message string `json:"message,omitempty"`
	// Schedulers are the existing schedulers' names.
	Schedulers []string `json:"schedulers"`
	// Unknown has a message for each object kind that could not be read, and for facts that no object
	// has.
	Unknown []string `json:"unknown,omitempty"`
}

// Pod explains a pod.
func Pod(in Input) *Report {
	r := &Report{Namespace: in.Namespace, Pod: in.Name, State: Missing, Nodes: len(in.Nodes),
		Schedulers: schedulerNames(in.Schedulers), Unknown: in.Unknown}
	switch pod := in.Pod; {
	case pod == nil:
		r.Findings = append(append([]Finding{}, evictions(in.Ended)...), refusals(in.Events)...) // not null in JSON
	case pod.Spec.NodeName != "":
		r.describe(in)
		r.State, r.Node = Bound, pod.Spec.NodeName
		now, before := ends(in)
		r.Findings = slices.Concat(now, placement(in), before)
	default:
		r.describe(in)
		r.State = Pending
		r.Message, _ = lastAttempt(in)
		_, before := ends(in)
		r.Findings = append(pending(in), before...)
	}
	r.Unknown = append(r.Unknown, unknownEnds(r.Findings)...)
	r.Summary = summary(r.Findings)
	return r
}

func (r *Report) describe(in Input) {
	r.Scheduler, r.Seconds = schedulerOf(in.Pod), int64(in.age()/time.Second)
	r.Routed = in.Pod.Annotations[ownership.AnnotationRoute] == r.Scheduler
	if in.Pod.Spec.Priority != nil {
		r.Priority = *in.Pod.Spec.Priority
	}
}

// age returns the pod's age. It is not negative, also if the clocks differ.
func (in Input) age() time.Duration { return max(in.Now.Sub(in.Pod.CreationTimestamp.Time), 0) }

// schedulerOf returns a pod's scheduler name.
func schedulerOf(pod *corev1.Pod) string {
	if pod.Spec.SchedulerName == "" {
		return corev1.DefaultSchedulerName
	}
	return pod.Spec.SchedulerName
}

// maxSummary is the number of findings in a summary.
const maxSummary = 3

func summary(findings []Finding) string {
	var texts []string
	for _, f := range findings[:min(len(findings), maxSummary)] {
		texts = append(texts, f.Text)
	}
	if more := len(findings) - maxSummary; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

// pending explains a pod without a node.
func pending(in Input) []Finding {
	if in.Pod.DeletionTimestamp != nil {
		return []Finding{{Cause: Deleted, Text: "the pod is being deleted, so no scheduler places it"}}
	}
	if f := gated(in.Pod); f != nil {
		return []Finding{*f}
	}
	message, tried := lastAttempt(in)
	down, exists := schedulerState(in, tried)
	if !exists {
		return []Finding{*down}
	}
	var findings []Finding
	if down != nil {
		findings = append(findings, *down)
	}
	if f := nominated(in); f != nil {
		findings = append(findings, *f)
	}
	if tried {
		findings = append(findings, rejected(in, message)...)
	} else {
		findings = append(findings, untried(in, down != nil)...)
	}
	return findings
}

// lastAttempt returns the message from the scheduler that last tried to place the pod: from the
// condition, which is complete, or, if a scheduler writes none, from the last event. ok is false if
// none has tried.
func lastAttempt(in Input) (message string, ok bool) {
	if c := podstatus.Unscheduled(in.Pod); c != nil && c.Reason != corev1.PodReasonSchedulingGated {
		return c.Message, true
	}
	for i := range in.Events { // the last one is the first
		if in.Events[i].Reason == "FailedScheduling" {
			return in.Events[i].Message, true
		}
	}
	return "", false
}

// gated explains a pod with scheduling gates.
func gated(pod *corev1.Pod) *Finding {
	if len(pod.Spec.SchedulingGates) == 0 {
		return nil
	}
	var gates []string
	for _, g := range pod.Spec.SchedulingGates {
		gates = append(gates, g.Name)
	}
	names := strings.Join(gates, ", ")
	return &Finding{
		Cause: Gated, By: "SchedulingGates", Text: "the pod has the scheduling gates " + names,
		Fix: "the controller that set them has to remove them: " + names,
	}
}

// nominated explains a pod for which others are preempted.
func nominated(in Input) *Finding {
	node := in.Pod.Status.NominatedNodeName
	if node == "" {
		return nil
	}
	text := fmt.Sprintf("the pod is nominated to node %s", node)
	if u := in.Usage[node]; u != nil && len(u.Terminating) > 0 {
		text += fmt.Sprintf(", where %s terminating: %s", plural.Phrase(len(u.Terminating), "pod is", "pods are"),
			list(u.Terminating))
	}
	return &Finding{Cause: Preempting, By: "DefaultPreemption", Text: text, Examples: []string{node},
		Fix: "wait until the preempted pods have ended"}
}

// untried explains a pod that no scheduler has reported.
func untried(in Input, down bool) []Finding {
	findings := claimFindings(in)
	for _, group := range groupObstacles(obstacles(in)) {
		findings = append(findings, group.finding(in))
	}
	if !down {
		age := in.age().Round(time.Second)
		fix := "pmk-sched logs, pmk-sched verify --name " + schedulerOf(in.Pod)
		if s := findScheduler(in.Schedulers, schedulerOf(in.Pod)); s != nil && !strings.HasPrefix(s.Where, "Deployment/") {
			fix = s.logs()
		}
		findings = slices.Insert(findings, 0, Finding{
			Cause: NotTried, Text: fmt.Sprintf("scheduler %s has not reported the pod in %s", schedulerOf(in.Pod), age),
			Fix: "look for errors and for the length of its queue: " + fix,
		})
	}
	return findings
}

// maxNames is the number of names that are listed.
const maxNames = 3

// list joins the first names.
func list(names []string) string {
	if more := len(names) - maxNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), more)
	}
	return strings.Join(names, ", ")
}
