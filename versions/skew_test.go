package versions

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckSkewOnBothSidesOfEveryRequirement(t *testing.T) {
	for _, tc := range []struct {
		scheduler string
		works     [2]int // minors of the API server, both included
		beyond    [2]string
	}{
		{"v1.20.15", [2]int{20, 24}, [2]string{"", "policy/v1beta1 PodDisruptionBudgets"}},
		{"v1.21.3", [2]int{21, 26}, [2]string{
			"policy/v1 PodDisruptionBudgets", "storage.k8s.io/v1beta1 CSIStorageCapacities"}},
		{"v1.23.17", [2]int{21, 26}, [2]string{"Namespaces", "storage.k8s.io/v1beta1 CSIStorageCapacities"}},
		{"v1.24.3", [2]int{24, 37}, [2]string{"storage.k8s.io/v1 CSIStorageCapacities", ""}},
		{"v1.31.0", [2]int{24, 37}, [2]string{"storage.k8s.io/v1 CSIStorageCapacities", ""}},
		{"v1.32.2", [2]int{32, 37}, [2]string{"VolumeAttachments", ""}},
		{"v1.33.13", [2]int{32, 37}, [2]string{"VolumeAttachments", ""}},
		{"v1.34.2", [2]int{34, 37}, [2]string{"resource.k8s.io/v1 ResourceClaims", ""}},
		{"v1.36.3", [2]int{34, 37}, [2]string{"resource.k8s.io/v1 ResourceClaims", ""}},
		{"v1.37.1", [2]int{37, 37}, [2]string{"resource.k8s.io/v1 DeviceTaintRules", ""}},
		{"v1.38.0", [2]int{37, 37}, [2]string{"resource.k8s.io/v1 DeviceTaintRules", ""}},
	} {
		for _, suffix := range []string{"", "-gke.100", "-eks-036c24b", "+k3s1", "+rke2r1", "-rc.1", "-alpha.2"} {
			for minor := oldestMinor; minor <= newestMinor; minor++ {
				scheduler, apiserver := release(t, tc.scheduler+suffix), release(t, Release{Major: 1, Minor: minor}.String()+suffix)
				_, err := CheckSkew(scheduler, apiserver)
				want := ""
				switch minor {
				case tc.works[0] - 1:
					want = tc.beyond[0]
				case tc.works[1] + 1:
					want = tc.beyond[1]
				}
				works := tc.works[0] <= minor && minor <= tc.works[1]
				if (err == nil) != works {
					t.Errorf("%s with %s: got %v, want it to work: %v", scheduler, apiserver, err, works)
				}
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s with %s: got %v, want %q in it", scheduler, apiserver, err, want)
				}
				var invalid *Error
				if err != nil && (!errors.As(err, &invalid) || !strings.HasSuffix(invalid.Hint(), apiserver.MinorString())) {
					t.Errorf("%s with %s: got %#v, want an *Error that names the minor to use", scheduler, apiserver, err)
				}
			}
		}
	}
}

func TestCheckSkewWarnsAboutUnsupportedSkew(t *testing.T) {
	for _, tc := range []struct{ scheduler, apiserver, says string }{
		{"v1.24.3", "v1.24.17-gke.100", ""},
		{"v1.24.3", "v1.25.4", "minor releases should match"},
		{"v1.24.3", "v1.26.3", "at most one minor release older"},
		{"v1.31.0", "v1.30.14", "newer than the API server"},
		{"v2.24.0", "v1.25.4", "minor releases should match"},
	} {
		warnings, err := CheckSkew(release(t, tc.scheduler), release(t, tc.apiserver))
		if err != nil || (len(warnings) == 1) != (tc.says != "") || !strings.Contains(strings.Join(warnings, ""), tc.says) {
			t.Errorf("%s with %s: got %q, %v, want %q", tc.scheduler, tc.apiserver, warnings, err, tc.says)
		}
		if unsupported := strings.HasSuffix(strings.Join(warnings, ""), ")"); tc.says != "" &&
			unsupported != !strings.HasSuffix(tc.says, "match") {
			t.Errorf("%s with %s: got %q, want %q", tc.scheduler, tc.apiserver, warnings, tc.says)
		}
	}
}

// A scheduler that works with a server of its minor release requires what CheckSkew looks for.
func TestRequiredResources(t *testing.T) {
	const budgets, capacities = "policy/v1 PodDisruptionBudgets", "storage.k8s.io/v1beta1 CSIStorageCapacities"
	for of, want := range map[string][]string{
		"v1.19.0":  {"policy/v1beta1 PodDisruptionBudgets"},
		"v1.20.15": {"policy/v1beta1 PodDisruptionBudgets"},
		"v1.21.0":  {budgets, "Namespaces", capacities},
		"v1.23.17": {budgets, "Namespaces", capacities},
		"v1.24.0":  {budgets, "Namespaces", "storage.k8s.io/v1 CSIStorageCapacities"},
		"v1.99.0": {budgets, "Namespaces", "storage.k8s.io/v1 CSIStorageCapacities", "storage.k8s.io/v1 VolumeAttachments",
			"resource.k8s.io/v1 ResourceClaims", "resource.k8s.io/v1 DeviceTaintRules"},
	} {
		if diff := cmp.Diff(want, Required(release(t, of))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", of, diff)
		}
	}
}

func release(t *testing.T, reported string) Release {
	t.Helper()
	r, err := FromServer(reported)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
