package inspect

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDetectFindsTheAPIOfGangs(t *testing.T) {
	both := []string{"GenericWorkload", "GangScheduling"}
	for name, tt := range map[string]struct {
		version string
		served  map[string][]string
		flags   []string
		want    *Gangs
		text    string
	}{
		"before 1.35": {"v1.34.2", nil, nil, nil, ""},
		"not served": {
			"v1.36.3", nil, nil, &Gangs{API: "scheduling.k8s.io/v1alpha2", Gates: both},
			"plugin coscheduling (scheduling.k8s.io/v1alpha2 is not served, as by default)",
		},
		"another resource only": {"v1.36.3", map[string][]string{"scheduling.k8s.io/v1alpha2": {"workloads"}}, nil,
			&Gangs{API: "scheduling.k8s.io/v1alpha2", Gates: both}, "plugin coscheduling"},
		"served": {
			"v1.35.4", map[string][]string{"scheduling.k8s.io/v1alpha1": {"workloads"}},
			[]string{"--feature-gates=GenericWorkload=true"},
			&Gangs{API: "scheduling.k8s.io/v1alpha1", Gates: both, Served: true},
			"scheduling.k8s.io/v1alpha1 is served; it needs a scheduler with " +
				"--feature-gates=GenericWorkload=true,GangScheduling=true",
		},
		"placed by the default scheduler": {
			"v1.37.1", map[string][]string{"scheduling.k8s.io/v1beta1": {"workloads", "podgroups", "podgroups/status"}},
			[]string{"--feature-gates=GenericWorkload=true"},
			&Gangs{API: "scheduling.k8s.io/v1beta1", Gates: []string{"GenericWorkload"}, Served: true, DefaultScheduler: true},
			"scheduling.k8s.io/v1beta1, placed by the default scheduler",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := pmkMaster()
			s.gitVersion, s.resources = tt.version, tt.served
			for i := range s.pods[0].Spec.Containers {
				if c := &s.pods[0].Spec.Containers[i]; c.Name == "kube-scheduler" {
					c.Command = append(c.Command, tt.flags...)
				}
			}
			info := detect(t, s)
			if diff := cmp.Diff(tt.want, info.Gangs); diff != "" {
				t.Errorf("gangs (-want +got):\n%s", diff)
			}
			if tt.want != nil && !strings.HasPrefix(info.Gangs.String(), tt.text) {
				t.Errorf("got %q, want %q", info.Gangs, tt.text)
			}
		})
	}
}

func TestDetectWarnsIfTheAPIOfGangsIsUnknown(t *testing.T) {
	s := pmkMaster()
	s.gitVersion = "v1.37.1"
	s.forbid = func(path string) bool { return strings.HasPrefix(path, "/apis/scheduling.k8s.io/") }
	info := detect(t, s)
	if info.Gangs != nil || !slices.ContainsFunc(info.Warnings, func(w string) bool {
		return strings.Contains(w, "whether the cluster has its own API for groups of pods is unknown")
	}) {
		t.Errorf("gangs %v, warnings %q", info.Gangs, info.Warnings)
	}
}
