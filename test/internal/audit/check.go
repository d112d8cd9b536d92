package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// NotOnce returns a problem for each pod that was not bound exactly once to the node that it has.
// pods are the nodes of all pods by namespace/name. A binding of unknown outcome counts for a pod
// that has its node and no other binding.
func (l Log) NotOnce(pods map[string]string) (problems []string) {
	bound, unknown := map[string][]string{}, map[string][]string{}
	for _, b := range l.Bindings {
		switch {
		case b.bound():
			bound[b.Pod] = append(bound[b.Pod], b.Node)
		case b.unknown():
			unknown[b.Pod] = append(unknown[b.Pod], b.Node)
		}
	}
	for _, pod := range slices.Sorted(maps.Keys(pods)) {
		node, to := pods[pod], bound[pod]
		switch {
		case node == "":
			problems = append(problems, pod+" has no node")
		case len(to) == 0 && !slices.Contains(unknown[pod], node) && !slices.Contains(unknown[pod], ""):
			problems = append(problems, fmt.Sprintf("%s is on %s, and no API server logged a binding to it", pod, node))
		case len(to) > 1:
			problems = append(problems, fmt.Sprintf("%s was bound %d times: %s", pod, len(to), strings.Join(to, ", ")))
		case len(to) == 1 && to[0] != node:
			problems = append(problems, fmt.Sprintf("%s is on %s and was bound to %s", pod, node, to[0]))
		}
	}
	for _, pod := range slices.Sorted(maps.Keys(bound)) {
		if _, exists := pods[pod]; !exists {
			problems = append(problems, pod+" was bound and is lost")
		}
	}
	return problems
}

// NotByLeader returns a problem for each binding by a replica that did not hold the lease when the
// API server received the request. A leader that has released the lease may bind until another
// holds it.
func (l Log) NotByLeader(lease string) (problems []string) {
	for _, b := range l.Bindings {
		if holder := l.holder(lease, b.At); b.bound() && hostOf(holder) != b.Server {
			problems = append(problems, fmt.Sprintf("%s was bound by %s at %s, when %q held the lease", b.Pod, b.Server,
				b.At.Format(time.RFC3339Nano), holder))
		}
	}
	return problems
}

// holder returns who held a lease last at a time.
func (l Log) holder(lease string, at time.Time) (holder string) {
	for _, r := range l.Renewals {
		if r.At.After(at) {
			break
		}
		if r.Lease == lease && r.Holder != "" {
			holder = r.Holder
		}
	}
	return holder
}

// hostOf returns the host name in the identity of a leader: host name, "_", random.
func hostOf(identity string) string {
	if i := strings.LastIndexByte(identity, '_'); i >= 0 {
		return identity[:i]
	}
	return identity
}

// Overcommitted returns a problem for each node whose pods request more than it has.
func Overcommitted(nodes []corev1.Node, pods []corev1.Pod) (problems []string) {
	requested := map[string]corev1.ResourceList{}
	for i := range pods {
		node := pods[i].Spec.NodeName
		if requested[node] == nil {
			requested[node] = corev1.ResourceList{}
		}
		add(requested[node], corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")})
		for _, c := range pods[i].Spec.Containers {
			add(requested[node], c.Resources.Requests)
		}
	}
	for _, n := range nodes {
		for _, name := range slices.Sorted(maps.Keys(requested[n.Name])) {
			want, has := requested[n.Name][name], n.Status.Allocatable[name]
			if want.Cmp(has) > 0 {
				problems = append(problems,
					fmt.Sprintf("node %s has %s of %s, and its pods request %s", n.Name, has.String(), name, want.String()))
			}
		}
	}
	return problems
}

func add(to, list corev1.ResourceList) {
	for name, quantity := range list {
		sum := to[name]
		sum.Add(quantity)
		to[name] = sum
	}
}
