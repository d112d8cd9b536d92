package manifest

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// ValidateName checks a scheduler name. It is part of object names and a label value, so it must be
// a DNS label. It must not be a name that the cluster uses: default-scheduler (the default of
// spec.schedulerName), kube-scheduler (the lease of the default scheduler), or default (the default
// ServiceAccount).
func ValidateName(name string) error {
	switch name {
	case "default-scheduler", "kube-scheduler", "default":
		return problem.Invalidf("choose another name, such as my-scheduler",
			"scheduler name %q is used by the cluster", name)
	}
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return problem.Invalidf("use lower-case letters, digits and '-', 63 at most, such as my-scheduler",
			"scheduler name %q is not a DNS label: %s", name, strings.Join(problems, "; "))
	}
	return nil
}
