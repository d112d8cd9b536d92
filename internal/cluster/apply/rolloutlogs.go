package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

const (
	logLines     = 20
	logBytes     = 1 << 20
	shownEvents  = 8
	shownPods    = 2
	evidenceTime = 15 * time.Second
	// missingLog is the kubelet's response, with status 200, while the runtime replaces the container
	// that it looked up (GetContainerLogs in pkg/kubelet/kuberuntime/kuberuntime_container.go).
	missingLog = "unable to retrieve container logs for "
	logReads   = 4
)

// rolloutError collects the events and logs for a failed rollout, within evidenceTime even if ctx
// has ended.
func (c *Client) rolloutError(ctx context.Context, s *observation, v verdict) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), evidenceTime)
	defer cancel()
	d := s.deployment
	e := &RolloutError{Deployment: d.Namespace + "/" + d.Name, Reason: v.reason, Message: v.message, Pods: v.pods,
		Err: v.err}
	pods := podsToShow(s, v)
	for i := range pods {
		e.Events = append(e.Events, c.eventsOf(ctx, pods[i].Namespace, pods[i].UID)...)
		e.Logs = append(e.Logs, c.logsOf(ctx, &pods[i])...)
	}
	if len(pods) == 0 {
		e.Events = c.eventsOf(ctx, d.Namespace, d.UID)
		for i := range s.replicaSets {
			if metav1.IsControlledBy(&s.replicaSets[i], d) {
				e.Events = append(e.Events, c.eventsOf(ctx, d.Namespace, s.replicaSets[i].UID)...)
			}
		}
	}
	return e
}

// podsToShow returns the current pods in a failed rollout whose events and logs are shown: those
// that failed, if they are known.
func podsToShow(s *observation, v verdict) []corev1.Pod {
	pods := currentPods(s.deployment, s.replicaSets, s.pods)
	if len(v.pods) > 0 {
		pods = slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return !slices.Contains(v.pods, pod.Name) })
	}
	return pods[:min(len(pods), shownPods)]
}

// eventsOf returns an object's last events, oldest first, or a line with the reason why they are
// unavailable.
func (c *Client) eventsOf(ctx context.Context, ns string, uid types.UID) []string {
	selector := fields.OneTermEqualSelector("involvedObject.uid", string(uid))
	list, err := kubeapi.List(ctx, c.retry, "read events",
		c.kube.CoreV1().Events(ns).List, metav1.ListOptions{FieldSelector: selector.String()})
	if err != nil {
		return []string{fmt.Sprintf("unavailable: %v", err)}
	}
	return eventLines(list.Items)
}

// eventLines returns a line for each of the last events, oldest first.
func eventLines(events []corev1.Event) []string {
	slices.SortStableFunc(events,
		func(a, b corev1.Event) int { return kubeapi.EventTime(&a).Compare(kubeapi.EventTime(&b)) })
	var lines []string
	for _, event := range events[max(0, len(events)-shownEvents):] {
		line := fmt.Sprintf("%s %s: %s", event.Type, event.Reason, strings.TrimSpace(event.Message))
		if event.Count > 1 {
			line += fmt.Sprintf(" (%d times)", event.Count)
		}
		lines = append(lines, line)
	}
	return lines
}

// logsOf returns the last log lines from a pod's containers, from the current and the previous run.
func (c *Client) logsOf(ctx context.Context, pod *corev1.Pod) []ContainerLog {
	var logs []ContainerLog
	for _, container := range pod.Status.ContainerStatuses {
		started := container.State.Running != nil || container.State.Terminated != nil
		endedBefore := container.LastTerminationState.Terminated != nil || container.RestartCount > 0
		if started {
			logs = append(logs, c.tailOf(ctx, pod, container.Name, false))
		}
		if endedBefore {
			logs = append(logs, c.tailOf(ctx, pod, container.Name, true))
		}
	}
	return logs
}

func (c *Client) tailOf(ctx context.Context, pod *corev1.Pod, container string, previous bool) ContainerLog {
	log := ContainerLog{Pod: pod.Name, Container: container, Previous: previous}
	doing := "read log of " + kubeapi.ObjectName("Pod", pod.Namespace, pod.Name)
	lines, bytes := int64(logLines), int64(logBytes)
	options := &corev1.PodLogOptions{Container: container, Previous: previous, TailLines: &lines, LimitBytes: &bytes}
	text, err := c.kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).DoRaw(ctx)
	for read := 1; read < logReads && err == nil && strings.HasPrefix(string(text), missingLog); read++ {
		if err = clock.Sleep(ctx, time.Second); err == nil {
			text, err = c.kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).DoRaw(ctx)
		}
	}
	log.Err = kubeapi.Explain(doing, err)
	if err == nil && len(text) > 0 {
		log.Lines = strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	}
	return log
}
