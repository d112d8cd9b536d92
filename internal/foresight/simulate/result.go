package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// count adds a node or a pod from the snapshot to the state before the simulation.
func (r *Run) count(kind *snapshot.Kind, key string, o map[string]any, action scenario.Action) error {
	switch kind.Name {
	case "Node":
		r.nodes[key] = true
		node := &corev1.Node{}
		if err := snapshot.Convert(o, node); err != nil {
			return err
		}
		r.usage.AddNode(node)
	case "ResourceSlice", "ResourceClaim":
		return r.countDevices(kind, o, &r.usage.Devices)
	case "Pod":
		pod := &corev1.Pod{}
		if err := snapshot.Convert(o, pod); err != nil {
			return err
		}
		r.pods[key] = true
		if !HoldsNode(pod) || !r.nodes[pod.Spec.NodeName] {
			return nil
		}
		r.usage.AddPod(pod)
		if action == scenario.Schedule {
			r.from[key] = pod.Spec.NodeName
		} else {
			r.before[key] = pod.Spec.NodeName
		}
	}
	return nil
}

// HoldsNode reports whether a pod takes room on a node.
func HoldsNode(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && !report.IsFinished(pod)
}

// readResult reads where the pods are, and compares with the state before.
func (r *Run) readResult(ctx context.Context) error {
	after := report.Usage{}
	gone := r.before
	err := r.EachPod(ctx, "", func(pod *corev1.Pod) error {
		r.placed(pod, gone, &after)
		return nil
	})
	if err != nil {
		return err
	}
	if err := r.evicted(ctx, gone, &after); err != nil {
		return err
	}
	return r.summarize(ctx, &after)
}

// evicted adds the pods that are gone to the result: pods that were on nodes before, and pods that
// were scheduled.
func (r *Run) evicted(ctx context.Context, gone map[string]string, after *report.Usage) error {
	if len(gone)+len(r.waits) == 0 {
		return nil
	}
	by, err := r.Evictors(ctx)
	if err != nil {
		return err
	}
	for _, w := range r.Waiting {
		key := w.Key
		if !r.waits[key] {
			continue
		}
		pod := &corev1.Pod{}
		if err := json.Unmarshal(w.Pod, pod); err != nil {
			return fmt.Errorf("read pod %s: %w", key, err)
		}
		after.AddPending(pod)
		namespace, name, _ := strings.Cut(key, "/")
		r.Report.Unplaced = append(r.Report.Unplaced,
			report.Unplaced{Namespace: namespace, Name: name, From: r.from[key], Reason: report.Evicted, By: by[key]})
	}
	for key, node := range gone {
		namespace, name, _ := strings.Cut(key, "/")
		r.Report.Evicted = append(r.Report.Evicted,
			report.Placement{Namespace: namespace, Name: name, Node: node, By: by[key]})
	}
	return nil
}

// placed adds a pod to the result, and removes it from gone and from the waiting pods.
func (r *Run) placed(pod *corev1.Pod, gone map[string]string, after *report.Usage) {
	key := pod.Namespace + "/" + pod.Name
	delete(gone, key)
	switch {
	case HoldsNode(pod):
		after.AddPod(pod)
	case pod.Spec.NodeName == "" && !report.IsFinished(pod):
		after.AddPending(pod)
	}
	if !r.waits[key] {
		return
	}
	delete(r.waits, key)
	switch {
	case pod.Spec.NodeName != "":
		r.Report.Placements = append(r.Report.Placements,
			report.Placement{Namespace: pod.Namespace, Name: pod.Name, Node: pod.Spec.NodeName, From: r.from[key]})
	default:
		r.Report.Unplaced = append(r.Report.Unplaced,
			report.Unplaced{Namespace: pod.Namespace, Name: pod.Name, From: r.from[key], Reason: Reason(pod)})
	}
}

// Reason returns why a pod has no node.
func Reason(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Message != "" {
			return condition.Message
		}
	}
	return "the scheduler gave no reason"
}

// summarize adds the numbers. It reads the nodes from the API server: a scenario may have changed
// them.
func (r *Run) summarize(ctx context.Context, after *report.Usage) error {
	if err := r.EachNode(ctx, after.AddNode); err != nil {
		return err
	}
	if err := r.readDevices(ctx, after); err != nil {
		return err
	}
	s := &r.Report.Summary
	s.Nodes, s.Pods = after.Nodes, r.usage.Pods
	r.Report.Measure(&r.usage, after)
	return nil
}
