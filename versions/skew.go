package versions

import (
	"fmt"
	"strings"
)

// requirement is an API or permission that kube-schedulers in some minor releases wait for at
// startup, and the minor releases of the API server that provide it. A scheduler that cannot list
// the resources that it watches does not fail: it never schedules anything.
type requirement struct {
	from, before int // of the scheduler
	needs        string
	// servedFrom and servedBefore are the API servers that provide it; lacks is the reason for other
	// API servers not to provide it.
	servedFrom, servedBefore int
	lacks                    string
}

const (
	notServed  = "does not serve it"
	notGranted = "does not let system:kube-scheduler list it"
)

// requirements come from the informers that pkg/scheduler starts, the APIs' lifecycle (k8s.io/api,
// zz_generated.prerelease-lifecycle.go) and the ClusterRole
// (plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go). Resources that a scheduler watches
// only with a feature gate that is disabled by default are not included.
func requirements() []requirement {
	return []requirement{
		{20, 21, "policy/v1beta1 PodDisruptionBudgets", 5, 25, notServed},
		{21, onward, "policy/v1 PodDisruptionBudgets", 21, onward, notServed},
		{21, onward, "Namespaces", 21, onward, notGranted},
		{21, 24, "storage.k8s.io/v1beta1 CSIStorageCapacities", 21, 27, notServed},
		{24, onward, "storage.k8s.io/v1 CSIStorageCapacities", 24, onward, notServed},
		{32, onward, "storage.k8s.io/v1 VolumeAttachments", 32, onward, notGranted},
		{34, onward, "resource.k8s.io/v1 ResourceClaims", 34, onward, notServed},
		{37, onward, "resource.k8s.io/v1 DeviceTaintRules", 37, onward, notServed},
	}
}

// CheckSkew reports whether one release's kube-scheduler works with another release's API server.
// Only minor releases matter. The error, an *Error, lists the resources that the scheduler would
// wait for; the warning is for a pair that works but that Kubernetes' version skew policy does not
// support. Releases newer than the table are treated as the newest.
func CheckSkew(scheduler, apiserver Release) (warnings []string, err error) {
	if scheduler.MinorString() == apiserver.MinorString() {
		return nil, nil
	}
	var lacking []string
	for _, w := range requirements() {
		if scheduler.Minor < w.from || scheduler.Minor >= w.before {
			continue
		}
		if apiserver.Minor < w.servedFrom || apiserver.Minor >= w.servedBefore {
			lacking = append(lacking,
				fmt.Sprintf("it waits for %s, and API server %s %s", w.needs, apiserver.MinorString(), w.lacks))
		}
	}
	if len(lacking) > 0 {
		return nil, &Error{
			Message: fmt.Sprintf("kube-scheduler %s cannot schedule with API server %s: %s", scheduler, apiserver,
				strings.Join(lacking, "; ")),
			Try: "use a scheduler of the API server's minor release, " + apiserver.MinorString(),
		}
	}
	text := fmt.Sprintf("the scheduler is %s and the API server is %s: their minor releases should match", scheduler,
		apiserver)
	switch {
	case scheduler.Major != apiserver.Major:
	case scheduler.Minor > apiserver.Minor:
		text += " (Kubernetes does not support a scheduler newer than the API server)"
	case scheduler.Minor < apiserver.Minor-1:
		text += " (Kubernetes supports a scheduler at most one minor release older)"
	}
	return []string{text}, nil
}

// Required returns the resources that a release's kube-scheduler, or that of the closest release in
// the table, waits for and that older or newer API servers lack, such as "policy/v1
// PodDisruptionBudgets".
func Required(r Release) []string {
	var all []string
	for _, w := range requirements() {
		if w.from <= r.nearest() && r.nearest() < w.before {
			all = append(all, w.needs)
		}
	}
	return all
}
