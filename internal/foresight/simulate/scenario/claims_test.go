package scenario_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

// The pod with the UID p is created again; volumes of the class late wait for a pod.
func TestClaimsOfPodsThatAreCreatedAgainAreRenewed(t *testing.T) {
	const (
		owned  = `"metadata":{"annotations":{"pv.kubernetes.io/bind-completed":"yes","volume.kubernetes.io/selected-node":"n"},"ownerReferences":[{"uid":"p"}]}`
		bound  = `"spec":{"storageClassName":"late","volumeName":"v"},"status":{"phase":"Bound"}`
		device = `"status":{"allocation":{},"reservedFor":[{"uid":"p"}]}`
	)
	for name, tc := range map[string]struct{ kind, text, want string }{
		"of an ephemeral volume": {"PersistentVolumeClaim", `{` + owned + `,` + bound + `}`,
			`{"metadata":{"annotations":{},"ownerReferences":[{"uid":"p"}]},"spec":{"storageClassName":"late"}}`},
		"of an ephemeral volume, bound at once": {"PersistentVolumeClaim",
			`{` + owned + `,"spec":{"storageClassName":"early","volumeName":"v"}}`, ""},
		"of another pod":      {"PersistentVolumeClaim", `{"metadata":{"ownerReferences":[{"uid":"o"}]},` + bound + `}`, ""},
		"that no pod owns":    {"PersistentVolumeClaim", `{"metadata":{},` + bound + `}`, ""},
		"without a UID":       {"PersistentVolumeClaim", `{"metadata":{"ownerReferences":[{}]},` + bound + `}`, ""},
		"devices, a template": {"ResourceClaim", `{` + owned + `,` + device + `}`, `{` + owned + `}`},
		"devices, no template": {"ResourceClaim", `{"metadata":{},` + device + `}`,
			`{"metadata":{}}`},
		"devices, shared": {"ResourceClaim", `{"status":{"allocation":{},"reservedFor":[{"uid":"p"},{"uid":"o"}]}}`,
			`{"status":{"allocation":{},"reservedFor":[{"uid":"o"}]}}`},
		"devices of another pod": {"ResourceClaim", `{"status":{"allocation":{},"reservedFor":[{"uid":"o"}]}}`, ""},
		"a volume":               {"PersistentVolume", `{"spec":{"claimRef":{"uid":"p"}},"status":{"phase":"Bound"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.want == "" {
				tc.want = tc.text
			}
			o := decode(t, tc.text)
			got := scenario.Renew(kindNamed(t, tc.kind), o, func(uid string) bool { return uid == "p" || uid == "" },
				func(class string) bool { return class == "late" })
			if diff := cmp.Diff(decode(t, tc.want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(decode(t, tc.text), o); diff != "" {
				t.Errorf("the argument was changed:\n%s", diff)
			}
		})
	}
}

// The API server keeps nothing else of the status of a pod that is scheduled again.
func TestPodsThatAreScheduledAgainKeepTheNamesOfTheirClaims(t *testing.T) {
	const pod = `{"metadata":{"namespace":"shop","name":"web"},"spec":{"nodeName":"n"},
		"status":{"phase":"Running","resourceClaimStatuses":[{"name":"gpu","resourceClaimName":"web-gpu-1"}]}}`
	got, action := scenario.Drain([]string{"n"}).Apply(kindNamed(t, "Pod"), decode(t, pod))
	want := `{"metadata":{"namespace":"shop","name":"web"},"spec":{},
		"status":{"resourceClaimStatuses":[{"name":"gpu","resourceClaimName":"web-gpu-1"}]}}`
	if diff := cmp.Diff(decode(t, want), got); diff != "" || action != scenario.Schedule {
		t.Errorf("action %v (-want +got):\n%s", action, diff)
	}
}

func TestAPodWithoutTheTemplateOfItsClaimIsRefused(t *testing.T) {
	_, err := scenario.Add(manifests(t, `{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c}],
		resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]}}`), 1, 0)
	if want := "Pod default/a: the ResourceClaimTemplate default/one is missing"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}
