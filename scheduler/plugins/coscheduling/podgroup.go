package coscheduling

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// podGroups are the PodGroups of sigs.k8s.io/scheduler-plugins. Only their spec is read.
func podGroups() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
}

type podGroup struct {
	minMember int
	timeout   time.Duration // 0: the timeout of the arguments
}

// readPodGroup returns an object's podGroup.
func readPodGroup(u *unstructured.Unstructured) (interface{}, error) {
	size, found, err := unstructured.NestedInt64(u.Object, "spec", "minMember")
	if err != nil {
		return nil, err
	}
	seconds, _, err := unstructured.NestedInt64(u.Object, "spec", "scheduleTimeoutSeconds")
	if err != nil {
		return nil, err
	}
	if !found || size < 1 {
		return nil, fmt.Errorf("spec.minMember must be 1 or more")
	}
	timeout := time.Duration(0)
	switch {
	case seconds > int64(longestTimeout/time.Second): // compared in seconds, which cannot overflow
		timeout = longestTimeout
	case seconds > 0:
		timeout = time.Duration(seconds) * time.Second
	}
	return podGroup{minMember: int(size), timeout: timeout}, nil
}
