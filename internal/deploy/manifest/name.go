package manifest

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// ValidateName checks a scheduler name. It is part of object names and a label value, so it must be
// a DNS label. It must not be one of [ownership.ClusterNames].
func ValidateName(name string) error {
	if slices.Contains(ownership.ClusterNames(), name) {
		return problem.Invalidf("choose another name, such as my-scheduler",
			"scheduler name %q is used by the cluster", name)
	}
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return problem.Invalidf("use lower-case letters, digits and '-', 63 at most, such as my-scheduler",
			"scheduler name %q is not a DNS label: %s", name, strings.Join(problems, "; "))
	}
	return nil
}
