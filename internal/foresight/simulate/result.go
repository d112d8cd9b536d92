package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// count adds a node or a pod from the snapshot to the state before the simulation.
func (r *run) count(kind *snapshot.Kind, key string, o map[string]any, action scenario.Action) error {
	switch kind.Name {
	case "Node":
		r.nodes[key] = true
		node := &corev1.Node{}
		if err := convert(o, node); err != nil {
			return err
		}
		r.usage.AddNode(node)
	case "ResourceSlice", "ResourceClaim":
		return r.countDevices(kind, o, &r.usage.Devices)
	case "Pod":
		pod := &corev1.Pod{}
		if err := convert(o, pod); err != nil {
			return err
		}
		r.pods[key] = true
		if !holdsNode(pod) || !r.nodes[pod.Spec.NodeName] {
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

func convert(o map[string]any, into any) error {
	text, err := snapshot.Encode(o)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("read an object of the snapshot: %w", err)
	}
	return nil
}

// holdsNode reports whether a pod takes room on a node.
func holdsNode(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && !report.IsFinished(pod)
}

// pageSize limits the pods that are read with one request.
const pageSize = 500

// readResult reads where the pods are, and compares with the state before.
func (r *run) readResult(ctx context.Context) error {
	kube, err := kubernetes.NewForConfig(r.server.Config())
	if err != nil {
		return err
	}
	after := report.Usage{}
	gone := r.before
	token := ""
	for {
		page, err := kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: pageSize, Continue: token})
		if err != nil {
			return kubeapi.Explain("read where the pods are", err)
		}
		for i := range page.Items {
			r.placed(&page.Items[i], gone, &after)
		}
		if token = page.Continue; token == "" {
			break
		}
	}
	if err := r.evicted(ctx, kube, gone, &after); err != nil {
		return err
	}
	return r.summarize(ctx, kube, &after)
}

// evicted adds the pods that are gone to the result: pods that were on nodes before, and pods that
// were scheduled.
func (r *run) evicted(ctx context.Context, kube kubernetes.Interface, gone map[string]string,
	after *report.Usage) error {
	if len(gone)+len(r.waits) == 0 {
		return nil
	}
	by, err := preemptors(ctx, kube)
	if err != nil {
		return err
	}
	for _, w := range r.waiting {
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
		r.report.Unplaced = append(r.report.Unplaced,
			report.Unplaced{Namespace: namespace, Name: name, From: r.from[key], Reason: report.Evicted, By: by[key]})
	}
	for key, node := range gone {
		namespace, name, _ := strings.Cut(key, "/")
		r.report.Evicted = append(r.report.Evicted,
			report.Placement{Namespace: namespace, Name: name, Node: node, By: by[key]})
	}
	return nil
}

// placed adds a pod to the result, and removes it from gone and from the waiting pods.
func (r *run) placed(pod *corev1.Pod, gone map[string]string, after *report.Usage) {
	key := pod.Namespace + "/" + pod.Name
	delete(gone, key)
	switch {
	case holdsNode(pod):
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
		r.report.Placements = append(r.report.Placements,
			report.Placement{Namespace: pod.Namespace, Name: pod.Name, Node: pod.Spec.NodeName, From: r.from[key]})
	default:
		r.report.Unplaced = append(r.report.Unplaced,
			report.Unplaced{Namespace: pod.Namespace, Name: pod.Name, From: r.from[key], Reason: reason(pod)})
	}
}

// reason returns why a pod has no node.
func reason(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Message != "" {
			return condition.Message
		}
	}
	return "the scheduler gave no reason"
}

// summarize adds the numbers. It reads the nodes from the API server: a scenario may have changed
// them.
func (r *run) summarize(ctx context.Context, kube kubernetes.Interface, after *report.Usage) error {
	if err := eachNode(ctx, kube, after.AddNode); err != nil {
		return err
	}
	if err := r.readDevices(ctx, after); err != nil {
		return err
	}
	s := &r.report.Summary
	s.Nodes, s.Pods = after.Nodes, r.usage.Pods
	r.report.Measure(&r.usage, after)
	return nil
}

// eachNode calls do with each node.
func eachNode(ctx context.Context, kube kubernetes.Interface, do func(*corev1.Node)) error {
	token := ""
	for {
		page, err := kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: pageSize, Continue: token})
		if err != nil {
			return kubeapi.Explain("read the nodes", err)
		}
		for i := range page.Items {
			do(&page.Items[i])
		}
		if token = page.Continue; token == "" {
			return nil
		}
	}
}
