package simulate

import (
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/load"
	"github.com/pmk-sched/pmk-sched/versions"
)

// An API server does not start with a version of an API that it does not know (pkg/apis/resource).
func TestAPIServersServeTheVersionsOfDevicesThatTheyKnow(t *testing.T) {
	for release, want := range map[string]string{
		"v1.30.14": "", "v1.31.0": "v1alpha3", "v1.32.2": "v1alpha3 v1beta1", "v1.33.13": "v1alpha3 v1beta1 v1beta2",
		"v1.37.1": "v1alpha3 v1beta1 v1beta2",
	} {
		parsed, err := versions.Parse(release)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		args := apiServerArgs(parsed)
		if i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "--runtime-config=") }); i >= 0 {
			for entry := range strings.SplitSeq(strings.TrimPrefix(args[i], "--runtime-config="), ",") {
				got = append(got, strings.TrimSuffix(strings.TrimPrefix(entry, "resource.k8s.io/"), "=true"))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %s", release, got, want)
		}
	}
}

// Without a snapshot the API server has the classes that every cluster has.
func TestAnAPIServerNeedsNoSnapshot(t *testing.T) {
	var o Options
	if err := o.readClasses(); err != nil || o.firstClasses().Hash() != load.NewClasses().Hash() {
		t.Errorf("classes %v, %v", o.firstClasses().Objects(), err)
	}
}
