package adapter

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

type named struct{}

func (named) Name() string { return "Named" }

type filtering struct{ named }

func (*filtering) Filter(context.Context, scheduler.State, *corev1.Pod, scheduler.NodeInfo) *scheduler.Status {
	return nil
}

type misspelt struct{ named }

func (*misspelt) Filter(context.Context, *corev1.Pod, scheduler.NodeInfo) *scheduler.Status {
	return nil
}

type normalizing struct{ named }

func (*normalizing) NormalizeScore(context.Context, scheduler.State, *corev1.Pod,
	[]scheduler.NodeScore) *scheduler.Status {
	return nil
}

func TestCheckFindsMethodsThatAreNeverCalled(t *testing.T) {
	for _, c := range []struct {
		name    string
		plugin  scheduler.Plugin
		bound   interface{}
		wantErr string
	}{
		{"complete", &filtering{}, &filtering{}, ""},
		{"not bound", &filtering{}, &named{}, "implements the extension point Filter"},
		{"another signature", &misspelt{}, &misspelt{}, "does not implement scheduler.FilterPlugin"},
		{"optional method only", &normalizing{}, &named{}, "NormalizeScore is never called"},
		{"nil", (*filtering)(nil), &filtering{}, "neither a plugin nor an error"},
		{"no plugin", nil, &filtering{}, "neither a plugin nor an error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := check("Named", c.plugin, c.bound)
			if c.wantErr == "" && err != nil || c.wantErr != "" && (err == nil || !strings.Contains(err.Error(), c.wantErr)) {
				t.Errorf("got %v, want %q", err, c.wantErr)
			}
		})
	}
	if err := check("Other", &filtering{}, &filtering{}); err == nil || !strings.Contains(err.Error(), `returns "Named"`) {
		t.Errorf("another name: got %v", err)
	}
}

func TestRegisterReturnsTheExistingCollector(t *testing.T) {
	counter := func() prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "adapter_test_total", Help: "Test."})
	}
	first, err := scheduler.Register(registerer{}, counter())
	if err != nil {
		t.Fatal(err)
	}
	second, err := scheduler.Register(registerer{}, counter())
	if err != nil || second != first {
		t.Errorf("got %v, %v; want the first collector", second, err)
	}
	var already prometheus.AlreadyRegisteredError
	if err := (registerer{}).Register(counter()); !errors.As(err, &already) {
		t.Errorf("got %v", err)
	}
}

func TestReadArgumentsOfEveryKindOfObject(t *testing.T) {
	for _, c := range []struct {
		name   string
		object runtime.Object
		want   string
	}{
		{"none", nil, "default"},
		{"typed nil", (*runtime.Unknown)(nil), "default"},
		{"raw", &runtime.Unknown{Raw: []byte(`{"key": "raw"}`)}, "raw"},
		{"yaml", &runtime.Unknown{Raw: []byte("key: yaml\n"), ContentType: runtime.ContentTypeYAML}, "yaml"},
	} {
		t.Run(c.name, func(t *testing.T) {
			arguments, err := readArguments(c.object)
			if err != nil {
				t.Fatal(err)
			}
			got := struct {
				Key string `json:"key"`
			}{"default"}
			if err := arguments.Decode(&got); err != nil || got.Key != c.want {
				t.Errorf("got %q, %v", got.Key, err)
			}
		})
	}
}
