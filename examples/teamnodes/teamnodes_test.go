package teamnodes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

func TestPodsStayOnTheNodesOfTheirTeam(t *testing.T) {
	plugin, err := New(t.Context(), scheduler.NewArguments([]byte("label: team")), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		pod, node string
		want      scheduler.Code
	}{
		{"a", "a", scheduler.CodeSuccess}, {"a", "b", scheduler.CodeUnresolvable}, {"a", "", scheduler.CodeUnresolvable},
		{"", "a", scheduler.CodeUnresolvable}, {"", "", scheduler.CodeSuccess},
	} {
		pod := plugintest.NewPod("default", "p", nil)
		pod.Labels = map[string]string{"team": tt.pod}
		node := plugintest.NewNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n",
			Labels: map[string]string{"team": tt.node}}})
		if got := plugin.Filter(t.Context(), plugintest.NewState(), pod, node).Code(); got != tt.want {
			t.Errorf("pod of %q on a node of %q: %s, want %s", tt.pod, tt.node, got, tt.want)
		}
		if part, status := plugin.Sign(t.Context(), pod); part != tt.pod || status != nil {
			t.Errorf("pod of %q is signed %v, %v", tt.pod, part, status)
		}
	}
}

func TestALabelIsRequired(t *testing.T) {
	if _, err := New(t.Context(), scheduler.NewArguments([]byte(`{"label": ""}`)), nil); err == nil {
		t.Error("an empty label was accepted")
	}
}
