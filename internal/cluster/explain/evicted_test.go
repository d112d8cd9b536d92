package explain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ended returns an event about the pod shop/web-0.
func ended(reason, from, message string) corev1.Event {
	return corev1.Event{Reason: reason, Message: message, Source: corev1.EventSource{Component: from},
		LastTimestamp: metav1.NewTime(now), InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "web-0", UID: "1"}}
}

// The messages are those of releases from 1.20 to 1.37.
func TestEndsOfPodsAreExplainedByEvents(t *testing.T) {
	related := ended("Preempted", "s", "Preempted by pod 7 on node n1")
	related.Related = &corev1.ObjectReference{Kind: "Pod", Namespace: "infra", Name: "proxy"}
	deleted := ended("SuccessfulDelete", "replicaset-controller", "Deleted pod: web-0")
	deleted.InvolvedObject = corev1.ObjectReference{Kind: "ReplicaSet", Name: "web"}
	set := ended("SuccessfulDelete", "statefulset-controller", "delete Pod web-0 in StatefulSet web successful")
	set.InvolvedObject = corev1.ObjectReference{Kind: "StatefulSet", Name: "web"}
	descheduled := ended("LowNodeUtilization", "", "pod evicted from n1 node by sigs.k8s.io/descheduler")
	descheduled.Action, descheduled.ReportingController = "Descheduled", "sigs.k8s.io/descheduler"
	cases := map[string]struct {
		event corev1.Event
		cause Cause
		want  string
	}{
		"up to 1.22": {ended("Preempted", "s", "Preempted by infra/proxy on node n1"), Preempted,
			"scheduler s evicted pod web-0 at 2026-01-02T03:04:05Z: pod infra/proxy of higher priority took its room on node n1"},
		"1.26":             {ended("Preempted", "s", "Preempted by a pod on node n1"), Preempted, "another pod, which the event does not name"},
		"1.29":             {ended("Preempted", "s", "Preempted by pod 7 on node n1"), Preempted, "the pod with UID 7 of higher priority"},
		"1.37":             {ended("Preempted", "s", "Preempted by pod 7 on node n1."), Preempted, "took its room on node n1"},
		"with a reference": {related, Preempted, "pod infra/proxy of higher priority"},
		"another message":  {ended("Preempted", "s", "for a group"), Preempted, ": for a group"},
		"a taint": {ended("TaintManagerEviction", "taint-eviction-controller", "Marking for deletion Pod shop/web-0"),
			TaintEvicted, "the event does not name the taint"},
		"no eviction": {ended("TaintManagerEviction", "taint-eviction-controller", "Cancelling deletion of Pod shop/web-0"),
			"", ""},
		"a full disk": {ended("Evicted", "kubelet", "The node was low on resource: ephemeral-storage."), KubeletEvicted,
			"the kubelet ended pod web-0 at 2026-01-02T03:04:05Z: The node was low"},
		"a critical pod": {ended("Preempting", "kubelet", "Preempted in order to admit critical pod"), KubeletEvicted,
			"critical pod"},
		"Karpenter":      {ended("Evicted", "karpenter", "Evicted pod: Underutilized"), APIEvicted, "karpenter evicted pod web-0"},
		"an autoscaler":  {ended("ScaleDown", "cluster-autoscaler", "deleting pod for node scale down"), APIEvicted, "scale down"},
		"a descheduler":  {descheduled, APIEvicted, "sigs.k8s.io/descheduler evicted pod web-0"},
		"a ReplicaSet":   {deleted, DeletedByOwner, "ReplicaSet web deleted pod web-0"},
		"a StatefulSet":  {set, DeletedByOwner, "StatefulSet web deleted pod web-0"},
		"only the end":   {ended("Killing", "kubelet", "Stopping container main"), EndUnknown, "no event says who deleted it"},
		"a restart":      {ended("Killing", "kubelet", "Container main failed liveness probe, will be restarted"), "", ""},
		"something else": {ended("Pulled", "kubelet", "Stopping container main"), "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := Pod(Input{Namespace: "shop", Name: "web-0", Now: now, Ended: []corev1.Event{tc.event, tc.event}})
			if tc.cause == "" {
				if len(r.Findings) > 0 {
					t.Errorf("got %+v", r.Findings)
				}
				return
			}
			if r.State != Missing || len(r.Findings) != 1 || r.Findings[0].Cause != tc.cause ||
				!strings.Contains(r.Findings[0].Text, tc.want) || len(r.Unknown) == 0 {
				t.Errorf("got %+v, unknown %q; want %s: %s", r.Findings, r.Unknown, tc.cause, tc.want)
			}
		})
	}
}

// The end of containers says nothing if another event says who deleted the pod.
func TestEndOfContainersIsNoCauseOfItsOwn(t *testing.T) {
	r := Pod(Input{Namespace: "shop", Name: "web-0", Now: now, Ended: []corev1.Event{
		ended("Killing", "kubelet", "Stopping container main"), ended("Preempted", "s", "Preempted by a pod on node n1"),
	}})
	if len(r.Findings) != 1 || r.Findings[0].Cause != Preempted {
		t.Errorf("got %+v", r.Findings)
	}
}

// A StatefulSet creates a pod of the same name again.
func TestFormerPodIsExplainedAfterTheNewOne(t *testing.T) {
	in := newInput()
	in.Pod.Spec.NodeName = "n1"
	in.Ended = []corev1.Event{ended("Preempted", "s", "Preempted by infra/proxy on node n1")}
	r := Pod(in)
	last := r.Findings[len(r.Findings)-1]
	if r.State != Bound || r.Findings[0].Cause != Scheduled || last.Cause != Preempted ||
		!strings.HasPrefix(last.Text, "a former pod of this name: scheduler s evicted pod web-0") {
		t.Errorf("got %+v", r.Findings)
	}
}

func TestPodThatIsEndingIsExplainedByItsStatus(t *testing.T) {
	condition := func(reason, message string) corev1.PodStatus {
		return corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.DisruptionTarget,
			Status: corev1.ConditionTrue, Reason: reason, Message: message,
			LastTransitionTime: metav1.NewTime(now.Add(time.Second))}}}
	}
	cases := map[string]struct {
		status corev1.PodStatus
		cause  Cause
		want   string
	}{
		"a scheduler": {condition(corev1.PodReasonPreemptionByScheduler, "s: preempting to accommodate a higher priority pod"),
			Preempted, "the pod is ending since 2026-01-02T03:04:06Z: s: preempting"},
		"a taint": {condition("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"), TaintEvicted,
			"NoExecute"},
		"the API": {condition("EvictionByEvictionAPI", "Eviction API: evicting"), APIEvicted, "does not name the user"},
		"a node that is gone": {condition("DeletionByPodGC", "PodGC: node no longer exists"), EndUnknown,
			"node no longer exists"},
		"a full disk": {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on memory."},
			KubeletEvicted, "the kubelet ended the pod: Evicted: The node was low on memory."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := newInput()
			in.Pod.Spec.NodeName, in.Pod.Status = "n1", tc.status
			r := Pod(in)
			if r.Findings[0].Cause != tc.cause || !strings.Contains(r.Findings[0].Text, tc.want) ||
				r.Findings[1].Cause != Scheduled {
				t.Errorf("got %+v, want %s: %s", r.Findings, tc.cause, tc.want)
			}
		})
	}
}

func TestEvictionsBeyondTheFirstOnesAreCounted(t *testing.T) {
	var events []corev1.Event
	for i := range maxEvictions + 3 {
		events = append(events, corev1.Event{Reason: "Preempted", Message: "Preempted by a pod on node n1",
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: fmt.Sprint("db-", i)}})
	}
	findings := evictions(events)
	if last := findings[len(findings)-1]; len(findings) != maxEvictions+1 ||
		last.Text != "3 earlier evictions are not listed" {
		t.Errorf("%d findings, the last one %+v", len(findings), last)
	}
	if exact := evictions(events[:maxEvictions]); len(exact) != maxEvictions {
		t.Errorf("%d findings for %d evictions", len(exact), maxEvictions)
	}
}
