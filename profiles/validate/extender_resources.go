package validate

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// lastRepeated is the last minor release that configures NodeResourcesFit a second time for
// resources that an extender manages, and rejects existing arguments (pkg/scheduler/factory.go).
const lastRepeated = 21

// resources checks the managedResources of all extenders.
func (x *extenderCheck) resources() {
	managed := map[string]string{}
	for _, e := range x.all {
		taken := false
		for _, r := range e.ManagedResources {
			if problem := extendedResource(r.Name); problem != "" {
				x.add(refused, e, "managedResources", "extended resources are named example.com/resource", "managedResources: %q is not the name of an extended resource%s", r.Name, problem)
			}
			if other, twice := managed[r.Name]; twice {
				x.add(refused, e, "managedResources", "name it once", "managedResources: %s is named twice, first by %s", r.Name, other)
			}
			managed[r.Name] = e.what
			taken = taken || r.IgnoredByScheduler
			if r.IgnoredByScheduler && e.FilterVerb == "" {
				x.add(warning, e, "managedResources", "give it a filterVerb, or leave ignoredByScheduler out", "nobody checks that %s fits on a node: the scheduler ignores it, and the extender has no filterVerb", r.Name)
			} else if r.IgnoredByScheduler && e.Ignorable != nil && *e.Ignorable {
				x.add(warning, e, "managedResources", "leave one of the two out", "while it does not answer nobody checks that %s fits on a node: it is ignorable, and the scheduler ignores the resource", r.Name)
			}
		}
		if taken {
			x.ignoredTwice(e)
		}
	}
}

// ignoredTwice checks resources that are ignored by both an extender and the arguments of
// NodeResourcesFit.
func (x *extenderCheck) ignoredTwice(e checkedExtender) {
	for _, fit := range x.fit {
		ignored := node.Get(fit, "args", "ignoredResources")
		switch {
		case x.release.Minor <= lastRepeated:
			x.add(refused, e, "managedResources", "leave ignoredByScheduler out, and name the resource in ignoredResources of "+schema.ResourcesFit,
				"%s does not start where a resource is ignoredByScheduler and pluginConfig has arguments of %s too", x.release, schema.ResourcesFit)
		case len(node.Items(ignored)) > 0:
			x.add(warning, e, "managedResources", "name all of them in managedResources", "ignoredResources of %s does not count beside ignoredByScheduler, which takes its place", schema.ResourcesFit)
		}
	}
}

// extendedResource returns what is wrong with the name of an extended resource, or ""
// (IsExtendedResourceName in pkg/apis/core/v1/helper/helpers.go).
func extendedResource(name string) string {
	switch {
	case !strings.Contains(name, "/"), strings.Contains(name, "kubernetes.io/"):
		return "; names without a domain, and those of kubernetes.io, are Kubernetes' own"
	case strings.HasPrefix(name, "requests."):
		return "; those that begin with requests. are for quotas"
	}
	if wrong := append(validation.IsQualifiedName(name), validation.IsQualifiedName("requests."+name)...); len(wrong) > 0 {
		return ": " + wrong[0]
	}
	return ""
}
