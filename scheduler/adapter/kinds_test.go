package adapter

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// A scheme that has the arguments of a native plugin in a version of the configuration.
func TestPluginWhoseArgumentsAnotherPackageRegistersIsRefused(t *testing.T) {
	const refused = "plugin Gangs: package k8s.io/kubernetes/pkg/scheduler/apis/config registers the kind GangsArgs"
	for name, c := range map[string]struct {
		group, version, kind string
		want                 string
	}{
		"the kind of the plugin":     {config.GroupName, "v1", "GangsArgs", refused},
		"of an old version":          {config.GroupName, "v1beta2", "GangsArgs", refused},
		"which no file can name":     {config.GroupName, runtime.APIVersionInternal, "GangsArgs", ""},
		"the kind of another plugin": {config.GroupName, "v1", "QuotasArgs", ""},
		"of another group":           {"example.com", "v1", "GangsArgs", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := runtime.NewScheme()
			s.AddKnownTypeWithName(schema.GroupVersionKind{Group: c.group, Version: c.version, Kind: c.kind},
				&config.InterPodAffinityArgs{})
			defer func() {
				if got := recover(); (got == nil) != (c.want == "") || got != nil && !strings.HasPrefix(fmt.Sprint(got), c.want) {
					t.Errorf("got %v", got)
				}
			}()
			refuseForeignKind(s, "Gangs")
		})
	}
}

func TestTheFirstPackageThatRegistersTheArgumentsIsNamed(t *testing.T) {
	for range 8 { // kinds have no order
		s := runtime.NewScheme()
		for version, registered := range map[string]runtime.Object{"v1": &config.InterPodAffinityArgs{},
			"v1beta3": &metav1.Status{}, "v1beta2": &config.InterPodAffinityArgs{}} {
			s.AddKnownTypeWithName(schema.GroupVersionKind{Group: config.GroupName, Version: version, Kind: "GangsArgs"},
				registered)
		}
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, "package k8s.io/apimachinery/pkg/apis/meta/v1 ") {
					t.Fatal(got)
				}
			}()
			refuseForeignKind(s, "Gangs")
		}()
	}
}

func TestFactoryRefusesTheNamesOfInTreePluginsWithArguments(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a plugin InterPodAffinity is accepted")
		}
	}()
	Factory("InterPodAffinity", nil)
}

// renamed is a plugin that is registered by another name than its own, with its host.
func renamed(t *testing.T, constant string) (bound Plugin, host *Host, err error) {
	t.Helper()
	p := &filtering{}
	type filter struct {
		Base
		FilterPoint
	}
	bound, err = Renamed("Gangs", constant, func(_ context.Context, h *Host) (Plugin, error) {
		host = h
		return &filter{h.Base(p), FilterPoint{Host: h, Plugin: p}}, nil
	})(t.Context(), nil, nil)
	return bound, host, err
}

func TestRenamedPluginIsKnownToTheFrameworkByItsOtherName(t *testing.T) {
	bound, host, err := renamed(t, "Named")
	if err != nil {
		t.Fatal(err)
	}
	if got := bound.Name(); got != "Gangs" {
		t.Errorf("the framework has a plugin %s", got)
	}
	pod := &waiting{}
	w := portableWaitingPod{pod, host}
	w.Allow("Named")
	w.Allow("Another")
	w.Reject("Named", "too late")
	if diff := cmp.Diff([]string{"allow Gangs", "allow Another", "reject Gangs"}, pod.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if _, _, err := renamed(t, "Other"); err == nil || !strings.Contains(err.Error(), `returns "Named"`) {
		t.Errorf("a plugin with another constant: %v", err)
	}
}

// waiting records the names of plugins that allow or reject a pod.
type waiting struct {
	waitingPod
	calls []string
}

func (w *waiting) Allow(plugin string) { w.calls = append(w.calls, "allow "+plugin) }
func (w *waiting) Reject(plugin, _ string) bool {
	w.calls = append(w.calls, "reject "+plugin)
	return true
}
