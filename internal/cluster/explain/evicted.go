package explain

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
)

// EvictionReasons are the reasons in events about pods that were evicted or deleted, except for
// "Killing" and for descheduler events, whose reason is a strategy's name.
func EvictionReasons() []string {
	return []string{"Preempted", "TaintManagerEviction", "NodeControllerEviction", "Evicted", "Preempting", "ScaleDown",
		"EvictedByVPA", "SuccessfulDelete"}
}

// evictionOf returns why a pod ended, if an event shows it.
func evictionOf(e *corev1.Event) Cause {
	switch e.Reason {
	case "Preempted":
		return Preempted
	case "TaintManagerEviction", "NodeControllerEviction": // the former also reports evictions that are cancelled
		if strings.HasPrefix(e.Message, "Marking") {
			return TaintEvicted
		}
	case "Evicted": // Karpenter uses the reason of the kubelet
		if reporterOf(e) == "kubelet" {
			return KubeletEvicted
		}
		return APIEvicted
	case "Preempting":
		return KubeletEvicted
	case "ScaleDown", "EvictedByVPA":
		return APIEvicted
	case "SuccessfulDelete":
		return DeletedByOwner
	case "Killing": // containers that are restarted have other messages
		if strings.HasPrefix(e.Message, "Stopping container") {
			return EndUnknown
		}
	}
	if e.Action == "Descheduled" {
		return APIEvicted
	}
	return ""
}

func reporterOf(e *corev1.Event) string { return cmp.Or(e.ReportingController, e.Source.Component) }

// maxEvictions is the number of evictions that are listed.
const maxEvictions = 20

// evictions explains by events why pods ended, the last one first: one finding for each pod and
// cause.
func evictions(events []corev1.Event) []Finding {
	var findings []Finding
	seen, explained, more := map[string]bool{}, map[string]bool{}, 0
	for i := range events {
		e := &events[i]
		cause, pod := evictionOf(e), PodOf(e)
		key := string(cause) + " " + pod + " " + string(e.InvolvedObject.UID)
		if cause == "" || cause == EndUnknown || seen[key] {
			continue
		}
		seen[key], explained[pod] = true, true
		if more++; more <= maxEvictions {
			findings = append(findings, evictionFinding(cause, e))
		}
	}
	if more -= maxEvictions; more > 0 {
		text := plural.Phrase(more, "earlier eviction is", "earlier evictions are") + " not listed"
		findings = append(findings, Finding{Cause: findings[0].Cause, Text: text, Fix: "`kubectl get events` lists them"})
	}
	for i := range events {
		e := &events[i]
		if pod := PodOf(e); evictionOf(e) == EndUnknown && !explained[pod] {
			explained[pod] = true
			findings = append(findings, evictionFinding(EndUnknown, e))
		}
	}
	return findings
}

// deletedPod matches the pod's name in controllers' events about a deletion: by ReplicaSets and
// Jobs, and by StatefulSets.
var deletedPod = regexp.MustCompile(`(?i)^deleted? pod:? (\S+)`)

// PodOf returns the pod that an event is about, by name.
func PodOf(e *corev1.Event) string {
	if m := deletedPod.FindStringSubmatch(e.Message); m != nil && e.InvolvedObject.Kind != "Pod" {
		return m[1]
	}
	return e.InvolvedObject.Name
}

func evictionFinding(cause Cause, e *corev1.Event) Finding {
	f := Finding{Cause: cause, By: reporterOf(e)}
	at := kubeapi.EventTime(e).UTC().Format(time.RFC3339)
	pod := "pod " + PodOf(e)
	switch cause {
	case Preempted:
		f.By = "DefaultPreemption"
		f.Text = fmt.Sprintf("scheduler %s evicted %s at %s: %s", reporterOf(e), pod, at, preemptorText(e))
		f.Fix = "raise the priority of the pod, or set preemptionPolicy: Never for the other; `pmk-sched simulate preemptions` " +
			"shows which classes may evict it"
	case TaintEvicted:
		f.Text = fmt.Sprintf("%s was deleted at %s, because its node has a NoExecute taint that it does not tolerate, or no "+
			"longer: the event does not name the taint", pod, at)
		f.Fix = "look at the taints and the conditions of the node; a toleration with tolerationSeconds delays the eviction"
	case KubeletEvicted:
		f.Text = fmt.Sprintf("the kubelet ended %s at %s: %s", pod, at, e.Message)
		f.Fix = "request as much as the pod uses, or free the resource on the node"
	case APIEvicted:
		f.Text = fmt.Sprintf("%s evicted %s at %s: %s", reporterOf(e), pod, at, e.Message)
	case DeletedByOwner:
		f.By = e.InvolvedObject.Kind + " " + e.InvolvedObject.Name
		f.Text = fmt.Sprintf("%s deleted %s at %s: it was scaled down or updated, or replaces the pod", f.By, pod, at)
	default:
		f.Text = fmt.Sprintf("the kubelet stopped %s at %s; no event says who deleted it: an eviction through the API, such as "+
			"kubectl drain, and a deletion leave none", pod, at)
		f.Fix = "look for the deletion of the pod in the audit log of the API server"
	}
	return f
}

// preempted matches the messages in all releases: up to 1.22, 1.24 and 1.25 with the preempting
// pod's name, 1.23 and 1.26 to 1.28 without, from 1.29 on with its UID.
var preempted = regexp.MustCompile(`^Preempted by (?:([^/ ]+/\S+)|pod (\S+)|a pod) on node (\S+)`)

// Preemptor returns the pod for which a scheduler evicted another pod, as namespace/name or else by
// its UID, and the node, each "" if the eviction event does not have it. The reference has the name
// up to 1.35; events at 1.36 and 1.37 have no reference, since podExecutorPreemptor.Obj
// (pkg/scheduler/framework/preemption) is not an API object.
func Preemptor(e *corev1.Event) (name string, uid types.UID, node string) {
	if m := preempted.FindStringSubmatch(e.Message); m != nil {
		name, uid, node = m[1], types.UID(m[2]), strings.TrimSuffix(m[3], ".")
	}
	if r := e.Related; r != nil && r.Name != "" {
		name = r.Namespace + "/" + r.Name
	}
	return name, uid, node
}

// preemptorText says for which pod a scheduler evicted another one.
func preemptorText(e *corev1.Event) string {
	name, uid, node := Preemptor(e)
	other := ""
	switch {
	case name != "":
		other = "pod " + name
	case uid != "":
		other = "the pod with UID " + string(uid)
	case node != "":
		other = "another pod, which the event does not name,"
	default:
		return e.Message
	}
	if node != "" {
		node = " on node " + node
	}
	return other + " of higher priority took its room" + node
}

// ending explains a pod that exists and is ending or has failed, by its status.
func ending(pod *corev1.Pod) *Finding {
	c := podstatus.Condition(pod, corev1.DisruptionTarget)
	switch reason := pod.Status.Reason; {
	case c != nil && c.Status == corev1.ConditionTrue:
		causes := map[string]Cause{
			corev1.PodReasonPreemptionByScheduler: Preempted, "DeletionByTaintManager": TaintEvicted,
			"DeletionByDeviceTaintManager": TaintEvicted, "EvictionByEvictionAPI": APIEvicted,
			corev1.PodReasonTerminationByKubelet: KubeletEvicted,
		}
		f := &Finding{Cause: cmp.Or(causes[c.Reason], EndUnknown), By: c.Reason, Text: fmt.Sprintf(
			"the pod is ending since %s: %s", c.LastTransitionTime.UTC().Format(time.RFC3339), cmp.Or(c.Message, c.Reason))}
		if f.Cause == APIEvicted {
			f.Text += "; the condition does not name the user"
		}
		return f
	case pod.Status.Phase == corev1.PodFailed && slices.Contains(kubeletReasons(), reason):
		return &Finding{Cause: KubeletEvicted, By: "kubelet", Text: fmt.Sprintf("the kubelet ended the pod: %s: %s", reason,
			pod.Status.Message), Fix: "request as much as the pod uses, or free the resource on the node"}
	}
	return nil
}

// kubeletReasons are the values of status.reason for pods that a kubelet has ended (pkg/kubelet:
// eviction, preemption, nodeshutdown).
func kubeletReasons() []string {
	return []string{"Evicted", "Preempting", "NodeShutdown", "Shutdown", "Terminated"}
}

// ends explains a pod that exists by its status and by events about the pod and a former one with
// its name.
func ends(in Input) (now, before []Finding) {
	for _, f := range evictions(in.Events) {
		if f.Cause != EndUnknown {
			now = append(now, f)
		}
	}
	if f := ending(in.Pod); f != nil && !slices.ContainsFunc(now, func(o Finding) bool { return o.Cause == f.Cause }) {
		now = append(now, *f)
	}
	for _, f := range evictions(in.Ended) {
		f.Text = "a former pod of this name: " + f.Text
		before = append(before, f)
	}
	return now, before
}

// unknownEnds lists what events do not show about pods that have ended.
func unknownEnds(findings []Finding) []string {
	var unknown []string
	if slices.ContainsFunc(findings, Finding.isEnd) {
		unknown = append(unknown, "events are kept for an hour by default, and repeated ones are dropped: other evictions of the "+
			"pod are not known")
	}
	if slices.ContainsFunc(findings, func(f Finding) bool { return f.Cause == EndUnknown || f.Cause == APIEvicted }) {
		unknown = append(unknown, "the user who evicted the pod through the API is in the audit log of the API server only")
	}
	return unknown
}

// isEnd reports whether a finding explains why a pod ended.
func (f Finding) isEnd() bool {
	return slices.Contains([]Cause{Preempted, TaintEvicted, KubeletEvicted, APIEvicted, DeletedByOwner, EndUnknown},
		f.Cause)
}

// noVictims explains why a pod that lacks resources preempts no others.
func noVictims(in Input, message string, findings []Finding) *Finding {
	if in.Pod.Status.NominatedNodeName != "" ||
		!slices.ContainsFunc(findings, func(f Finding) bool { return f.Cause == Resource }) {
		return nil
	}
	if p := in.Pod.Spec.PreemptionPolicy; p != nil && *p == corev1.PreemptNever {
		return &Finding{Cause: Priority, By: "DefaultPreemption",
			Text: "the pod preempts no others: its preemptionPolicy is Never"}
	}
	lower := 0
	for _, u := range in.Usage {
		lower += u.Lower
	}
	if in.Usage == nil || lower > 0 {
		if strings.Contains(message, "No preemption victims found") {
			return &Finding{Cause: Priority, By: "DefaultPreemption",
				Text: "preempting pods of lower priority would not make room"}
		}
		return nil
	}
	if !evictionHelps(in) {
		return nil
	}
	priority := int32(0)
	if in.Pod.Spec.Priority != nil {
		priority = *in.Pod.Spec.Priority
	}
	return &Finding{
		Cause: Priority, By: "DefaultPreemption",
		Text: fmt.Sprintf("no running pod has a lower priority than %d, so that none is preempted", priority),
		Fix:  "a PriorityClass with a higher value, if the pod is more important than those that run",
	}
}

// evictionHelps reports whether the pod would fit on a node without the pods that run there. It
// would fit on no node that is unknown.
func evictionHelps(in Input) bool {
	for i := range in.Nodes {
		if !slices.ContainsFunc(allObstacles(in, &in.Nodes[i]), func(o obstacle) bool {
			return o.cause != HostPort && (o.cause != Resource || o.short.tooSmall())
		}) {
			return true
		}
	}
	return len(in.Nodes) == 0
}
