package adapter

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// preparing is a plugin at PreBind.
type preparing struct{}

func (*preparing) Name() string { return "Preparing" }

func (*preparing) PreBind(context.Context, scheduler.State, *corev1.Pod, string) *scheduler.Status {
	return nil
}

// checking has nothing to do for a pod of the name idle.
type checking struct{ preparing }

func (*checking) PreBindPreFlight(_ context.Context, _ scheduler.State, pod *corev1.Pod, _ string) *scheduler.Status {
	switch pod.Name {
	case "idle":
		return scheduler.Skip()
	case "broken":
		return scheduler.Error(errors.New("broken"))
	}
	return nil
}

func TestPreBindIsSkippedWhereThePluginSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		plugin scheduler.PreBindPlugin
		want   string
	}{
		"idle":    {&checking{}, "Skip"},
		"busy":    {&checking{}, "Success"},
		"broken":  {&checking{}, "Error"},
		"unasked": {&preparing{}, "Success"},
	} {
		t.Run(name, func(t *testing.T) {
			point := PreBindPoint{Plugin: c.plugin}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
			result, got := point.PreBindPreFlight(t.Context(), framework.NewCycleState(), pod, "n1")
			if got.Code().String() != c.want || result != nil {
				t.Errorf("got %v %v, want %s", result, got, c.want)
			}
		})
	}
}
