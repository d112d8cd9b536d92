package versions

import (
	"fmt"
	"strings"
)

// wall is something that kube-schedulers of some minors wait for when they
// start, and the minors of the API server that give it. A scheduler that cannot
// list one thing it watches does not fail: it never schedules anything.
type wall struct {
	from, before int // of the scheduler
	needs        string
	// served is when the API server has it; lacks says why others do not.
	servedFrom, servedBefore int
	lacks                    string
}

const (
	notServed  = "does not serve it"
	notGranted = "does not let system:kube-scheduler list it"
)

// walls are read from the informers that pkg/scheduler starts, the lifecycle of
// the APIs (k8s.io/api, zz_generated.prerelease-lifecycle.go) and the ClusterRole
// (plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go). What a scheduler
// watches only with a feature gate that is off by default does not count.
func walls() []wall {
	return []wall{
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

// CheckSkew says whether a kube-scheduler of one release can work with an API
// server of another. Only the minors count. The error, an *Error, names what
// such a scheduler would wait for in vain; a warning is for a pair that
// Kubernetes' version skew policy does not support but that nothing known stops.
// Minors newer than the table are taken to need and to give what the newest does.
func CheckSkew(scheduler, apiserver Release) (warnings []string, err error) {
	if scheduler.MinorString() == apiserver.MinorString() {
		return nil, nil
	}
	var lacking []string
	for _, w := range walls() {
		if scheduler.Minor < w.from || scheduler.Minor >= w.before {
			continue
		}
		if apiserver.Minor < w.servedFrom || apiserver.Minor >= w.servedBefore {
			lacking = append(lacking, fmt.Sprintf("it waits for %s, and an API server of %s %s", w.needs, apiserver.MinorString(), w.lacks))
		}
	}
	if len(lacking) > 0 {
		return nil, &Error{
			Message: fmt.Sprintf("a kube-scheduler of %s would never schedule anything with an API server of %s: %s", scheduler, apiserver, strings.Join(lacking, "; ")),
			Try:     "use the scheduler of the API server's own minor, " + apiserver.MinorString(),
		}
	}
	text := fmt.Sprintf("the scheduler is of %s and the API server of %s: they should be of one minor", scheduler, apiserver)
	switch {
	case scheduler.Major != apiserver.Major:
	case scheduler.Minor > apiserver.Minor:
		text += " (Kubernetes does not support a scheduler newer than the API server)"
	case scheduler.Minor < apiserver.Minor-1:
		text += " (Kubernetes supports a scheduler one minor older at most)"
	}
	return []string{text}, nil
}
