package collect

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestConfigurationNamesWhoMayRejectAPod(t *testing.T) {
	text := `apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: a
  plugins: {multiPoint: {enabled: [{name: LoadAware}, {name: NodeResourcesFit}]}}
- schedulerName: b
extenders:
- urlPrefix: https://policy.kube-system.svc
  filterVerb: filter
`
	cases := map[string]struct {
		text string
		want configuration
	}{
		"a configuration": {text, configuration{names: []string{"a", "b"}, plugins: []string{"LoadAware"},
			extenders: []string{"https://policy.kube-system.svc"}}},
		"another object": {"kind: Config\nprofiles: [{schedulerName: a}]", configuration{}},
		"other text":     {"{", configuration{}},
		"no text":        {"", configuration{}},
		"another type":   {"profiles: 3", configuration{}},
		"binary data":    {"\x00", configuration{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, readConfiguration(tc.text, "v1.24.3"),
				cmp.AllowUnexported(configuration{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLeaseShowsThatNoReplicaSchedules(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	holder, empty, seconds := "node-1_4f1c", "", int32(15)
	cases := map[string]struct {
		holder  *string
		renewed time.Duration
		want    string
	}{
		"renewed":    {&holder, 3 * time.Second, ""},
		"clocks":     {&holder, -2 * time.Second, ""},
		"late":       {&holder, 18 * time.Second, ""},
		"expired":    {&holder, time.Minute, "Lease/kube-system/s was not renewed by node-1 for 1m0s"},
		"no holder":  {&empty, time.Second, "Lease/kube-system/s has no holder"},
		"never held": {nil, time.Second, "Lease/kube-system/s has no holder"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			renewed := metav1.NewMicroTime(now.Add(-tc.renewed))
			lease := &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "s"},
				Spec: coordinationv1.LeaseSpec{HolderIdentity: tc.holder, RenewTime: &renewed,
					LeaseDurationSeconds: &seconds},
			}
			if got := leaseProblem(lease, now); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
