package adapter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
	if (registerer{}).Unregister(first) {
		t.Error("a collector is unregistered")
	}
	other := prometheus.NewGauge(prometheus.GaugeOpts{Name: "adapter_test_other", Help: "Test."})
	registerer{}.MustRegister(other)
	if existing, err := scheduler.Register(registerer{}, other); err != nil || existing != other {
		t.Errorf("got %v, %v; want the other collector", existing, err)
	}
	var already prometheus.AlreadyRegisteredError
	if err := (registerer{}).Register(counter()); !errors.As(err, &already) {
		t.Errorf("got %v", err)
	}
}

// registeredArgs are arguments whose type is in the scheme.
type registeredArgs struct {
	Key string
	err error
}

func (*registeredArgs) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }
func (a *registeredArgs) DeepCopyObject() runtime.Object { return a }

func (a *registeredArgs) MarshalJSON() ([]byte, error) {
	return []byte(fmt.Sprintf(`{"key": %q}`, a.Key)), a.err
}

func TestPluginThatCannotBeBuiltIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		args runtime.Object
		err  error
		want string
	}{
		"its arguments cannot be read": {&registeredArgs{err: errors.New("unreadable")}, nil, "plugin Named: read arguments of"},
		"its New fails":                {nil, errors.New("no cluster"), "plugin Named: no cluster"},
		"it is bound":                  {nil, nil, ""},
	} {
		built := false
		bound, err := Factory("Named", func(_ context.Context, h *Host) (Plugin, error) {
			built = true
			if c.err != nil {
				return nil, c.err
			}
			p := &filtering{}
			type filter struct {
				Base
				FilterPoint
			}
			return &filter{h.Base(p), FilterPoint{Host: h, Plugin: p}}, nil
		})(t.Context(), c.args, nil)
		switch {
		case built != (c.args == nil):
			t.Errorf("%s: it was built: %t", name, built)
		case c.want == "" && (err != nil || bound.Name() != "Named"):
			t.Errorf("%s: %v, %v", name, bound, err)
		case c.want != "" && (err == nil || bound != nil || !strings.HasPrefix(err.Error(), c.want)):
			t.Errorf("%s: %v, %v", name, bound, err)
		}
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
		{"of a registered type", &registeredArgs{Key: "object"}, "object"},
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
