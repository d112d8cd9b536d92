package scenario_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

// A pod of a recording arrives without its later fate. The kubelet makes a static pod on its node.
func TestPodsOfARecordingArrive(t *testing.T) {
	for _, tc := range []struct {
		pod, want string
		action    scenario.Action
	}{
		{`{"metadata":{"name":"a","deletionTimestamp":"x","ownerReferences":[{"kind":"ReplicaSet"}]},
			"spec":{"nodeName":"n","priority":1},"status":{"phase":"Succeeded"}}`,
			`{"metadata":{"name":"a","ownerReferences":[{"kind":"ReplicaSet"}]},"spec":{"priority":1}}`, scenario.Schedule},
		{`{"metadata":{"name":"a","ownerReferences":[{"kind":"Node"}]},"spec":{"nodeName":"n"},"status":{"phase":"Failed"}}`,
			`{"metadata":{"name":"a","ownerReferences":[{"kind":"Node"}]},"spec":{"nodeName":"n"},"status":{"phase":"Failed"}}`,
			scenario.Keep},
	} {
		pod := decode(t, tc.pod)
		got, action := scenario.Arriving(pod)
		if diff := cmp.Diff(decode(t, tc.want), got); diff != "" || action != tc.action {
			t.Errorf("action %v (-want +got):\n%s", action, diff)
		}
		got["metadata"].(map[string]any)["name"] = "changed"
		if diff := cmp.Diff(decode(t, tc.pod), pod); diff != "" {
			t.Errorf("the pod was changed: %s", diff)
		}
	}
	s := scenario.Replay()
	_, action := s.Apply(kindNamed(t, "Pod"), decode(t, `{"spec":{}}`))
	if s.Name != "replay" || action != scenario.Schedule {
		t.Errorf("%s: action %v of a pending pod", s.Name, action)
	}
}

func TestNothingOfASnapshotIsScheduledWhileItRuns(t *testing.T) {
	for text, want := range map[string]scenario.Action{
		`{"spec":{}}`: scenario.Leave, `{"spec":{"nodeName":"n"}}`: scenario.Keep,
		`{"spec":{},"status":{"phase":"Failed"}}`: scenario.Keep,
	} {
		if _, got := scenario.Running().Apply(kindNamed(t, "Pod"), decode(t, text)); got != want {
			t.Errorf("%s: action %v", text, got)
		}
	}
	if _, got := scenario.Running().Apply(kindNamed(t, "Node"), decode(t, `{"spec":{}}`)); got != scenario.Keep {
		t.Errorf("a node: action %v", got)
	}
}

func TestPodsGetAUID(t *testing.T) {
	uid := func(text string) any {
		pod := decode(t, text)
		scenario.SetUID(pod)
		metadata, _ := pod["metadata"].(map[string]any)
		return metadata["uid"]
	}
	if got := uid(`{"metadata":{"name":"a","namespace":"n","uid":"given"}}`); got != "given" {
		t.Errorf("a UID became %v", got)
	}
	a, b := uid(`{"metadata":{"name":"a","namespace":"n"}}`), uid(`{"metadata":{"name":"a","namespace":"n","uid":""}}`)
	if text, _ := a.(string); a != b || len(text) != 36 || a == uid(`{"metadata":{"name":"b","namespace":"n"}}`) {
		t.Errorf("got %v and %v", a, b)
	}
	if got := uid(`{}`); got != nil {
		t.Errorf("nothing has the UID %v", got)
	}
	namespace, name := scenario.Replica{Key: "shop/web-1"}.Name()
	if namespace != "shop" || name != "web-1" {
		t.Errorf("got %s, %s", namespace, name)
	}
	for text, want := range map[string]bool{
		`{"spec":{"resourceClaims":[{"name":"a"}]}}`: true, `{"spec":{"resourceClaims":[]}}`: false, `{}`: false,
	} {
		if got := scenario.HasClaims(decode(t, text)); got != want {
			t.Errorf("%s has claims: %t", text, got)
		}
	}
}
