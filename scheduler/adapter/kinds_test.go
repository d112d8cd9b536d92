package adapter

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
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

func TestArgumentsOfInTreePluginsAreInTheScheme(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("the scheme does not have the arguments of InterPodAffinity: the check would find nothing")
		}
	}()
	refuseForeignKind(scheme.Scheme, "InterPodAffinity")
}
