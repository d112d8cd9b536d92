package adapter

import (
	"fmt"
	"sort"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// refuseForeignKind panics if a package has registered an arguments kind for another plugin with
// that name. The kinds are known when all packages are initialized, before main calls Factory.
//
// kube-scheduler decodes plugin NAME's arguments strictly as the kind NAMEArgs if its scheme has
// that kind (decodeNestedObjects in k8s.io/kube-scheduler/config/v1/types.go), and makes default
// arguments from it if the configuration has none. A portable plugin's arguments have no kind, so
// their fields would be unknown in a type that belongs to a native plugin with the same name.
func refuseForeignKind(s *runtime.Scheme, plugin string) {
	kind := plugin + "Args"
	var packages []string
	for gvk, registered := range s.AllKnownTypes() {
		if gvk.Group == config.GroupName && gvk.Kind == kind && gvk.Version != runtime.APIVersionInternal {
			packages = append(packages, registered.PkgPath())
		}
	}
	if len(packages) > 0 {
		sort.Strings(packages)
		panic(fmt.Sprintf("plugin %s: package %s registers the kind %s, so that kube-scheduler reads the arguments as those "+
			"of another plugin %s", plugin, packages[0], kind, plugin))
	}
}
