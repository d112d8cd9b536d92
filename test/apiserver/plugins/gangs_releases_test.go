//go:build linux && releases

package plugins

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

func oneOfTwoGangs(t *testing.T, s subject) {
	x := startGangs(t, s, "gangs", 5, 2)
	x.createWith(t, "a", 6, 6, 1)
	x.createWith(t, "b", 6, 6, 1)
	first, second := x.awaitWhole(t, 6, "a", "b")
	x.awaitReason(t, second, "more than is free")
	if n := x.bound(t, second); n != 0 {
		t.Errorf("%d pods of %s are bound", n, second)
	}
	x.withoutFlush(t, "the first gang is deleted", func() {
		x.removeGang(t, first)
		x.awaitGang(t, second, 6)
	})
}

// In total there is room for four pods of two slots on four nodes of three, so that one is left
// over.
func rivalGangs(t *testing.T, s subject) {
	x := startGangs(t, s, "rivals", 4, 3)
	for _, name := range []string{"a", "b"} {
		x.createWith(t, name, 3, 3, 2)
	}
	first, second := x.awaitWhole(t, 3, "a", "b")
	if n := x.bound(t, second); n != 0 {
		t.Errorf("%d pods of %s are bound", n, second)
	}
	x.withoutFlush(t, "the first gang is deleted", func() {
		x.removeGang(t, first)
		x.awaitGang(t, second, 3)
	})
}

// Neither one that exceeds the cluster nor one whose pods do not fit on its nodes keeps single pods
// from being scheduled.
func hugeGang(t *testing.T, s subject) {
	x := startGangs(t, s, "huge", 3, 3)
	x.createWith(t, "exceeding", 20, 20, 1)
	x.createWith(t, "unfitting", 4, 4, 2)
	x.awaitReason(t, "exceeding", "pod group huge/exceeding needs")
	x.awaitReason(t, "unfitting", "pod group huge/unfitting")
	for i := range 3 {
		name := fmt.Sprintf("single-%d", i)
		x.create(t, x.pod(name, amounts{slots: "3"}))
		x.awaitBound(t, name)
	}
	if n := x.bound(t, "exceeding") + x.bound(t, "unfitting"); n != 0 {
		t.Errorf("%d pods of groups that do not fit are bound", n)
	}
}

// The size comes from a PodGroup, which is created together with its CustomResourceDefinition after
// the pods.
func sizedGang(t *testing.T, s subject) {
	x := startGangs(t, s, "sized", 2, 2)
	x.createWith(t, "a", 3, 0, 1)
	x.awaitReason(t, "a", "pod group sized/a has no size")
	client := x.define(t, "coscheduling",
		schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"})
	create(t.Context(), t, client.Namespace(x.name), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
		"metadata": map[string]any{"name": "a", "namespace": x.name}, "spec": map[string]any{"minMember": int64(3)},
	}})
	x.awaitGang(t, "a", 3) // the scheduler asks for the resource every minute
}

// awaitWhole waits until all pods of one of two groups are bound, and returns that group and the
// other one.
func (x gangs) awaitWhole(t *testing.T, size int, a, b string) (first, second string) {
	t.Helper()
	run.Eventually(t, "one of the groups is placed", func(context.Context) (bool, string) {
		boundA, boundB := x.bound(t, a), x.bound(t, b)
		first, second = a, b
		if boundB == size {
			first, second = b, a
		}
		return boundA == size || boundB == size,
			fmt.Sprintf("%d and %d pods are bound; %s", boundA, boundB, x.reasons(t, a)+x.reasons(t, b))
	})
	return first, second
}

// awaitReason waits until the scheduler has rejected every pod of a group, one of them with a
// reason.
func (x gangs) awaitReason(t *testing.T, group, reason string) {
	t.Helper()
	run.Eventually(t, "the pods of group "+group+" are rejected", func(context.Context) (bool, string) {
		rejected := true
		for _, pod := range x.list(t, group) {
			rejected = rejected && message(&pod) != ""
		}
		reasons := x.reasons(t, group)
		return rejected && strings.Contains(reasons, reason), reasons
	})
}

// removeGang deletes the pods of a group.
func (x gangs) removeGang(t *testing.T, group string) {
	t.Helper()
	if err := x.Kube.CoreV1().Pods(x.name).DeleteCollection(t.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: groupLabel + "=" + group}); err != nil {
		t.Fatal(err)
	}
}
