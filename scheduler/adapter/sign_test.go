package adapter

import (
	"bytes"
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// teamed is a plugin whose results depend on a label.
type teamed struct{}

func (teamed) Name() string { return "Teamed" }

func (teamed) Filter(context.Context, scheduler.State, *corev1.Pod, scheduler.NodeInfo) *scheduler.Status {
	return nil
}

func (teamed) Sign(_ context.Context, pod *corev1.Pod) (interface{}, *scheduler.Status) {
	switch team := pod.Labels["team"]; team {
	case "alone":
		return nil, scheduler.Unschedulable("depends on other pods")
	case "broken":
		return nil, scheduler.Error(errors.New("broken"))
	default:
		return team, nil
	}
}

// frameworkWith returns a framework with a plugin at filter, with its method Sign or without.
func frameworkWith(t *testing.T, signs bool) framework.Framework {
	t.Helper()
	metrics.Register()
	type signing struct {
		Base
		FilterPoint
		SignPoint
	}
	type silent struct {
		Base
		FilterPoint
	}
	var p scheduler.FilterPlugin = &teamed{}
	if !signs {
		p = &filtering{}
	}
	registry := frameworkruntime.Registry{p.Name(): Factory(p.Name(), func(_ context.Context, host *Host) (Plugin, error) {
		base, filter := host.Base(p), FilterPoint{Host: host, Plugin: p}
		if signs {
			return &signing{Base: base, FilterPoint: filter, SignPoint: SignPoint{Host: host, Plugin: p.(scheduler.SignPlugin)}},
				nil
		}
		return &silent{Base: base, FilterPoint: filter}, nil
	}), "QueueSort": Factory("QueueSort", newSorted), "Bind": Factory("Bind", newBinder)}
	enabled := func(name string) config.PluginSet { return config.PluginSet{Enabled: []config.Plugin{{Name: name}}} }
	fw, err := frameworkruntime.NewFramework(t.Context(), registry,
		&config.KubeSchedulerProfile{SchedulerName: "test", Plugins: &config.Plugins{
			QueueSort: enabled("QueueSort"), Filter: enabled(p.Name()), Bind: enabled("Bind"),
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fw.Close(); err != nil {
			t.Error(err)
		}
	})
	return fw
}

type sorted struct{}

func (*sorted) Name() string                       { return "QueueSort" }
func (*sorted) Less(a, b scheduler.QueuedPod) bool { return a.Timestamp.Before(b.Timestamp) }

func newSorted(_ context.Context, host *Host) (Plugin, error) {
	p := &sorted{}
	return &struct {
		Base
		QueueSortPoint
	}{host.Base(p), QueueSortPoint{Host: host, Plugin: p}}, nil
}

type binder struct{}

func (*binder) Name() string { return "Bind" }

func (*binder) Bind(context.Context, scheduler.State, *corev1.Pod, string) *scheduler.Status {
	return nil
}

func newBinder(_ context.Context, host *Host) (Plugin, error) {
	p := &binder{}
	return &struct {
		Base
		BindPoint
	}{host.Base(p), BindPoint{Host: host, Plugin: p}}, nil
}

func TestPodsAreSignedByWhatThePluginReturns(t *testing.T) {
	fw := frameworkWith(t, true)
	sign := func(name, team string) []byte {
		return fw.SignPod(t.Context(),
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": team}}})
	}
	first := sign("one", "red")
	switch {
	case first == nil || !bytes.Equal(first, sign("two", "red")):
		t.Errorf("pods with equal parts: %s and %s", first, sign("two", "red"))
	case bytes.Equal(first, sign("three", "blue")):
		t.Errorf("pods with different parts are both %s", first)
	}
	for _, team := range []string{"alone", "broken"} {
		if signed := sign("four", team); signed != nil {
			t.Errorf("%s: signed %s", team, signed)
		}
	}
}

func TestNoPodIsSignedWithoutSign(t *testing.T) {
	if signed := frameworkWith(t, false).SignPod(t.Context(), &corev1.Pod{}); signed != nil {
		t.Errorf("signed %s", signed)
	}
}
