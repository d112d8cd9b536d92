package scenario_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

// An API server sets the UID, the time and the priority of every pod that it creates.
func TestObjectsThatAnAPIServerHasCreatedAreNotAdmittedAgain(t *testing.T) {
	const created = `"uid":"u","creationTimestamp":"2026-01-01T00:00:00Z"`
	cases := map[string]struct {
		kind, object string
		want         bool
	}{
		"a pod of a cluster":      {"Pod", `{"metadata":{` + created + `},"spec":{"priority":0}}`, true},
		"a manifest":              {"Pod", `{"metadata":{"name":"a"},"spec":{}}`, false},
		"a manifest with a UID":   {"Pod", `{"metadata":{"name":"a",` + created + `},"spec":{}}`, false},
		"a described pod":         {"Pod", `{"metadata":{"name":"a"},"spec":{"priority":100}}`, false},
		"a node of a cluster":     {"Node", `{"metadata":{` + created + `}}`, true},
		"a manifest of a node":    {"Node", `{"metadata":{"name":"a"}}`, false},
		"a claim of a controller": {"PersistentVolumeClaim", `{"metadata":{"name":"a","uid":"u"}}`, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := decode(t, tc.object)
			if got := scenario.IsCreated(kindNamed(t, tc.kind), o); got != tc.want {
				t.Errorf("got %v", got)
			}
			if metadata := scenario.MarkCreated(o)["metadata"].(map[string]any); metadata["uid"] == nil ||
				metadata["creationTimestamp"] == nil {
				t.Errorf("marked %v", metadata)
			}
			if diff := cmp.Diff(decode(t, tc.object), o); diff != "" {
				t.Errorf("the object was changed: %s", diff)
			}
		})
	}
}

func TestAdmittedPodsHaveTheFieldsOfTheAnswer(t *testing.T) {
	const answer = `{"metadata":{"name":"a","uid":"x"},"spec":{"overhead":{"cpu":"1"},"priority":5,"priorityClassName":"gold",` +
		`"preemptionPolicy":"PreemptLowerPriority","schedulerName":"default-scheduler"},"status":{"phase":"Pending","qosClass":"Burstable"}}`
	cases := map[string]struct{ pod, want string }{
		"a manifest": {`{"spec":{}}`,
			`{"overhead":{"cpu":"1"},"priority":5,"priorityClassName":"gold","preemptionPolicy":"PreemptLowerPriority"}`},
		"a scheduler": {`{"spec":{"schedulerName":"default-scheduler"}}`,
			`{"overhead":{"cpu":"1"},"priority":5,"priorityClassName":"gold","preemptionPolicy":"PreemptLowerPriority","schedulerName":"default-scheduler"}`},
		"its priority": {`{"spec":{"priority":100,"priorityClassName":"gold"}}`,
			`{"overhead":{"cpu":"1"},"priority":100,"priorityClassName":"gold"}`},
		"its priority, without a class": {`{"spec":{"priority":7,"preemptionPolicy":"Never"}}`,
			`{"overhead":{"cpu":"1"},"priority":7,"preemptionPolicy":"Never"}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := scenario.Admitted(kindNamed(t, "Pod"), decode(t, tc.pod), decode(t, answer))
			if diff := cmp.Diff(decode(t, tc.want), got["spec"]); diff != "" || got["status"] != nil {
				t.Errorf("status %v, specification (-want +got):\n%s", got["status"], diff)
			}
		})
	}
}

func TestClassesOfPodsExist(t *testing.T) {
	has := func(kind, name string) bool { return kind+" "+name == "PriorityClass high" }
	for pod, want := range map[string]string{
		`{"metadata":{"namespace":"n","name":"p"},"spec":{}}`:                                                     "",
		`{"metadata":{"namespace":"n","name":"p"},"spec":{"priorityClassName":"high"}}`:                           "",
		`{"metadata":{"namespace":"n","name":"p"},"spec":{"priorityClassName":"none"}}`:                           "pod n/p: there is no PriorityClass none",
		`{"metadata":{"namespace":"n","name":"p"},"spec":{"priorityClassName":"high","runtimeClassName":"high"}}`: "pod n/p: there is no RuntimeClass high",
	} {
		err := scenario.CheckClasses(decode(t, pod), has)
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want || !problem.IsInvalid(err)) {
			t.Errorf("%s: got %v, want %q", pod, err, want)
		}
	}
}

// Priorities are those of classes that may have changed, and are computed again.
func TestPrioritiesAreRemovedAndSet(t *testing.T) {
	const pod = `{"metadata":{"name":"a"},"spec":{"nodeName":"n","priority":5,"priorityClassName":"high",` +
		`"preemptionPolicy":"PreemptLowerPriority"}}`
	given := decode(t, pod)
	if diff := cmp.Diff(decode(t, `{"metadata":{"name":"a"},"spec":{"nodeName":"n"}}`),
		scenario.WithoutPriority(given)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(decode(t, pod), given); diff != "" {
		t.Errorf("the pod was changed: %s", diff)
	}
	for text, want := range map[string]bool{
		pod: true, `{"spec":{"priority":0}}`: true, `{"spec":{}}`: false, `{}`: false,
	} {
		if got := scenario.HasPriority(decode(t, text)); got != want {
			t.Errorf("%s has a priority: %t", text, got)
		}
	}
	for _, text := range []string{`{}`, `{"spec":{"preemptionPolicy":"PreemptLowerPriority"}}`} {
		got := decode(t, text)
		scenario.NeverPreempt(got)
		if diff := cmp.Diff(decode(t, `{"spec":{"preemptionPolicy":"Never"}}`), got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestMarksOfCreatedObjects(t *testing.T) {
	marked := func(text string) map[string]any {
		return scenario.MarkCreated(decode(t, text))["metadata"].(map[string]any)
	}
	given := marked(`{"kind":"Pod",
		"metadata":{"name":"a","uid":"u","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"a":"b"}}}`)
	want := decode(t, `{"name":"a","uid":"u","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"a":"b"}}`)
	if diff := cmp.Diff(want, given); diff != "" {
		t.Error(diff)
	}
	a, empty := marked(`{"kind":"Pod","metadata":{"name":"a"}}`), marked(`{"kind":"Pod","metadata":{"name":"a","uid":""}}`)
	if diff := cmp.Diff(a, empty); diff != "" || a["creationTimestamp"] != "2000-01-01T00:00:00Z" {
		t.Errorf("%v: %s", a, diff)
	}
	for _, other := range []string{`{"kind":"Pod","metadata":{"name":"b"}}`, `{"kind":"Node","metadata":{"name":"a"}}`,
		`{"kind":"Pod","metadata":{"name":"a","namespace":"n"}}`} {
		if marked(other)["uid"] == a["uid"] {
			t.Errorf("%s has the UID of another object", other)
		}
	}
}

func TestAdmittedNodesHaveTheStatusOfTheAnswer(t *testing.T) {
	got := scenario.Admitted(kindNamed(t, "Node"), decode(t, `{"metadata":{"name":"n","uid":"u","creationTimestamp":"t"},
		"spec":{"unschedulable":true},"status":{"capacity":{"cpu":"4"}}}`),
		decode(t, `{"metadata":{"uid":"x"},"spec":{"taints":[{"key":"a"}]},"status":{"allocatable":{"cpu":"4"}}}`))
	want := decode(t, `{"metadata":{"name":"n","uid":"u","creationTimestamp":"t"},"spec":{"taints":[{"key":"a"}]},
		"status":{"allocatable":{"cpu":"4"}}}`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
