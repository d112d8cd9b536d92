package validate

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// resources checks the managedResources of all extenders.
func (x *extenderCheck) resources() {
	managed := map[string]string{}
	for _, e := range x.all {
		taken := false
		for _, r := range e.ManagedResources {
			if problem := extendedResource(r.Name); problem != "" {
				x.add(refused, e, "managedResources", "extended resources are named example.com/resource",
					"managedResources: %q is not the name of an extended resource%s", r.Name, problem)
			}
			if other, twice := managed[r.Name]; twice {
				x.add(refused, e, "managedResources", "remove one of them", "managedResources: %s is named twice, first by %s",
					r.Name, other)
			}
			managed[r.Name] = e.what
			taken = taken || r.IgnoredByScheduler
			if r.IgnoredByScheduler && e.FilterVerb == "" {
				x.add(warning, e, "managedResources", "set filterVerb, or remove ignoredByScheduler",
					"%s is not checked on nodes: the scheduler ignores it, and the extender has no filterVerb", r.Name)
			} else if r.IgnoredByScheduler && e.Ignorable != nil && *e.Ignorable {
				x.add(warning, e, "managedResources", "remove one of them",
					"%s is not checked on nodes while the extender is unavailable: it is ignorable, and the scheduler ignores the "+
						"resource", r.Name)
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
		case x.rules.RepeatsFit:
			x.add(refused, e, "managedResources",
				"remove ignoredByScheduler, and add the resource to ignoredResources of "+schema.ResourcesFit,
				"%s does not start if a resource is ignoredByScheduler and pluginConfig has arguments of %s", x.release,
				schema.ResourcesFit)
		case len(node.Items(ignored)) > 0:
			x.add(warning, e, "managedResources", "list all of them in managedResources",
				"ignoredByScheduler overrides ignoredResources of %s", schema.ResourcesFit)
		}
	}
}

// extendedResource returns the problem with the name of an extended resource, or ""
// (IsExtendedResourceName in pkg/apis/core/v1/helper/helpers.go).
func extendedResource(name string) string {
	switch {
	case !strings.Contains(name, "/"), strings.Contains(name, "kubernetes.io/"):
		return "; names without a domain, and in kubernetes.io, are reserved"
	case strings.HasPrefix(name, "requests."):
		return "; names with the prefix requests. are for quotas"
	}
	if wrong := append(validation.IsQualifiedName(name), validation.IsQualifiedName("requests."+name)...); len(wrong) > 0 {
		return ": " + wrong[0]
	}
	return ""
}
