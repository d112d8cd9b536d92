package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
)

// placement explains a pod that has a node.
func placement(in Input) []Finding {
	pod := in.Pod
	findings := []Finding{{Cause: Scheduled, Examples: []string{pod.Spec.NodeName}, Text: boundText(in)}}
	fit := matching(in)
	if needs := nodeRequirements(pod); len(needs) > 0 {
		findings = append(findings, Finding{
			Cause: NodeAffinity, By: "NodeAffinity", Nodes: fit, Text: fmt.Sprintf("%s %s",
				plural.Phrase(fit, "node matches", "nodes match"), strings.Join(needs, " and ")),
		})
	}
	if text := podTerms(pod, false); text != "" {
		findings = append(findings, Finding{Cause: PodAffinity, By: "InterPodAffinity", Text: "the pod " + text})
	}
	if text := podTerms(pod, true); text != "" {
		findings = append(findings, Finding{Cause: AntiAffinity, By: "InterPodAffinity", Text: "the pod " + text})
	}
	if text := spreadTerms(pod); text != "" {
		findings = append(findings, Finding{Cause: Spread, By: "PodTopologySpread", Text: "the pod " + text})
	}
	if text := where(in); text != "" {
		findings = append(findings, Finding{Cause: VolumeNode, By: "VolumeBinding", Text: text})
	}
	return findings
}

// boundText says who put the pod on its node.
func boundText(in Input) string {
	pod := in.Pod
	node := "node " + pod.Spec.NodeName
	at := slices.IndexFunc(in.Events, func(e corev1.Event) bool { return e.Reason == "Scheduled" })
	condition := podstatus.Condition(pod, corev1.PodScheduled)
	switch {
	case pod.Annotations[corev1.MirrorPodAnnotationKey] != "":
		return "the kubelet of " + node + " runs it as a static pod; no scheduler placed it"
	case at >= 0:
		e := &in.Events[at]
		return fmt.Sprintf("scheduler %s placed it on %s at %s", reporterOf(e), node,
			kubeapi.EventTime(e).UTC().Format(time.RFC3339))
	case condition != nil && condition.Status == corev1.ConditionTrue:
		return fmt.Sprintf("it is on %s since %s; the event that names the scheduler has expired, the pod names %s",
			node, condition.LastTransitionTime.UTC().Format(time.RFC3339), schedulerOf(pod))
	}
	return "it was created with " + node + ", or bound without a scheduler's event"
}

// refusals explains a pod that does not exist by the events about the workloads that may not create
// it.
func refusals(events []corev1.Event) []Finding {
	var findings []Finding
	for i := range events {
		e := &events[i]
		owner := e.InvolvedObject.Kind + " " + e.InvolvedObject.Name
		text := fmt.Sprintf("%s cannot create it: %s", owner, e.Message)
		f := Finding{Cause: Refused, By: owner, Text: text, Fix: "change the pod template, or what refuses it"}
		if strings.Contains(e.Message, "exceeded quota") || strings.Contains(e.Message, "failed quota") {
			f = Finding{Cause: Quota, By: owner, Text: text,
				Fix: "raise the ResourceQuota, request less, or delete pods of the namespace"}
		}
		if !slices.ContainsFunc(findings, func(other Finding) bool { return other.By == f.By && other.Cause == f.Cause }) {
			findings = append(findings, f)
		}
	}
	return findings
}
