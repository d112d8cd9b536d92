package spec

import (
	"slices"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
)

// deployedExtenders returns the extenders that pmk-sched deploys.
func deployedExtenders(r *v1alpha1.CustomScheduler) []v1alpha1.Extender {
	return slices.DeleteFunc(slices.Clone(r.Spec.Extenders), func(e v1alpha1.Extender) bool { return !e.IsDeployed() })
}
