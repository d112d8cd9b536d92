package ask

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// applyLimits applies the LimitRanges of the pod's namespace (plugin/pkg/admission/limitranger).
func (c *classes) applyLimits(pod *corev1.Pod) (refused string) {
	for i := range c.limits {
		limits := &c.limits[i]
		if limits.Namespace != pod.Namespace {
			continue
		}
		for j := range limits.Spec.Limits {
			if item := &limits.Spec.Limits[j]; item.Type == corev1.LimitTypeContainer {
				eachContainer(pod, func(one *corev1.Container) {
					fill(&one.Resources.Limits, item.Default)
					fill(&one.Resources.Requests, item.DefaultRequest)
				})
			}
		}
	}
	for i := range c.limits {
		limits := &c.limits[i]
		if limits.Namespace != pod.Namespace {
			continue
		}
		for j := range limits.Spec.Limits {
			if refused = checkLimits(pod, &limits.Spec.Limits[j]); refused != "" {
				return "LimitRange " + limits.Name + ": " + refused
			}
		}
	}
	return ""
}

func eachContainer(pod *corev1.Pod, do func(*corev1.Container)) {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			do(&containers[i])
		}
	}
}

// fill adds the amounts that are missing.
func fill(into *corev1.ResourceList, from corev1.ResourceList) {
	for name, amount := range from {
		if _, ok := (*into)[name]; ok {
			continue
		}
		if *into == nil {
			*into = corev1.ResourceList{}
		}
		(*into)[name] = amount.DeepCopy()
	}
}

// checkLimits returns the reason why a pod violates a limit.
func checkLimits(pod *corev1.Pod, item *corev1.LimitRangeItem) (refused string) {
	check := func(what string, r corev1.ResourceRequirements) {
		for name, least := range item.Min {
			request, requested := r.Requests[name]
			limit, limited := r.Limits[name]
			switch {
			case !requested || request.Cmp(least) < 0:
				refused = fmt.Sprintf("the minimum %s per %s is %s", name, what, least.String())
			case limited && limit.Cmp(least) < 0:
				refused = fmt.Sprintf("the minimum %s per %s is %s", name, what, least.String())
			}
		}
		for name, most := range item.Max {
			request, requested := r.Requests[name]
			limit, limited := r.Limits[name]
			if !limited || limit.Cmp(most) > 0 || requested && request.Cmp(most) > 0 {
				refused = fmt.Sprintf("the maximum %s per %s is %s", name, what, most.String())
			}
		}
		for name, most := range item.MaxLimitRequestRatio {
			request, limit := r.Requests[name], r.Limits[name]
			if request.IsZero() || limit.IsZero() ||
				limit.AsApproximateFloat64() > most.AsApproximateFloat64()*request.AsApproximateFloat64() {
				refused = fmt.Sprintf("the maximum ratio of limit to request of %s per %s is %s", name, what, most.String())
			}
		}
	}
	switch item.Type {
	case corev1.LimitTypeContainer:
		eachContainer(pod, func(one *corev1.Container) { check("container", one.Resources) })
	case corev1.LimitTypePod:
		check("pod", sumOf(pod))
	}
	return refused
}

// sumOf returns the requests and limits of a pod as limits are applied to it: its containers'
// together, or those of an init container that has more.
func sumOf(pod *corev1.Pod) (sum corev1.ResourceRequirements) {
	sum = corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for i := range pod.Spec.Containers {
		add(sum.Requests, pod.Spec.Containers[i].Resources.Requests)
		add(sum.Limits, pod.Spec.Containers[i].Resources.Limits)
	}
	for i := range pod.Spec.InitContainers {
		raise(sum.Requests, pod.Spec.InitContainers[i].Resources.Requests)
		raise(sum.Limits, pod.Spec.InitContainers[i].Resources.Limits)
	}
	return sum
}

func add(into, from corev1.ResourceList) {
	for name, amount := range from {
		sum := into[name]
		sum.Add(amount)
		into[name] = sum
	}
}

func raise(into, from corev1.ResourceList) {
	for name, amount := range from {
		if have, ok := into[name]; !ok || have.Cmp(amount) < 0 {
			into[name] = amount.DeepCopy()
		}
	}
}

// checkRequests returns an error if a container requests more than its limit, which is what
// LimitRanges most often make invalid.
func checkRequests(pod *corev1.Pod) (err error) {
	eachContainer(pod, func(one *corev1.Container) {
		for name, request := range one.Resources.Requests {
			if limit, ok := one.Resources.Limits[name]; ok && request.Cmp(limit) > 0 {
				err = problem.Invalidf("", "pod %s/%s: container %s requests %s of %s, which is more than its limit %s",
					pod.Namespace, pod.Name, one.Name, request.String(), name, limit.String())
			}
		}
	})
	return err
}
