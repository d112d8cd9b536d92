package scenario_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
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
		"devices of a finished pod": {"ResourceClaim", `{"metadata":{},"status":{"allocation":{},"reservedFor":[{"uid":"e"}]}}`,
			`{"metadata":{}}`},
		"devices, made for a finished pod": {"ResourceClaim", `{"metadata":{"ownerReferences":[{"uid":"e"}]}}`, "deleted"},
		"devices, made by the scheduler": {"ResourceClaim", `{"metadata":{"annotations":{
			"resource.kubernetes.io/extended-resource-claim":"true"},"ownerReferences":[{"uid":"p"}]}}`, "deleted"},
		"devices of a running pod": {"ResourceClaim",
			`{"metadata":{"namespace":"shop","name":"used"},"status":{"allocation":{},"reservedFor":[{"uid":"o"}]}}`,
			`{"metadata":{"namespace":"shop","name":"used"},"status":{"allocation":{},"reservedFor":[{"uid":"o"},
				{"resource":"pods","name":"r","uid":"r"}]}}`},
		"no devices of a running pod": {"ResourceClaim", `{"metadata":{"namespace":"shop","name":"used"},"status":{}}`, ""},
		"a volume":                    {"PersistentVolume", `{"spec":{"claimRef":{"uid":"p"}},"status":{"phase":"Bound"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.want == "" {
				tc.want = tc.text
			}
			o := decode(t, tc.text)
			renewal := scenario.Renewal{
				Moved: func(uid string) bool { return uid == "p" || uid == "" }, Ended: func(uid string) bool { return uid == "e" },
				Waits:     func(class string) bool { return class == "late" },
				Consumers: map[string][]scenario.Consumer{"shop/used": {{Name: "r", UID: "r"}}},
			}
			got := renewal.Claim(kindNamed(t, tc.kind), o)
			if tc.want == "deleted" {
				if got != nil {
					t.Errorf("got %v, want none", got)
				}
				return
			}
			if diff := cmp.Diff(decode(t, tc.want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(decode(t, tc.text), o); diff != "" {
				t.Errorf("the argument was changed:\n%s", diff)
			}
		})
	}
}

// A ResourceClaim has at most 256 reservations, one for each pod.
func TestReservationsOfRunningPodsAreBounded(t *testing.T) {
	for given, want := range map[int]int{0: 3, 253: 256, 254: 256, 255: 256, 256: 256} {
		reserved := make([]any, given)
		for i := range reserved {
			reserved[i] = map[string]any{"uid": strconv.Itoa(i)}
		}
		o := map[string]any{"metadata": map[string]any{"namespace": "shop", "name": "used"},
			"status": map[string]any{"allocation": map[string]any{}, "reservedFor": reserved}}
		none := func(string) bool { return false }
		got := scenario.Renewal{Moved: none, Ended: none, Consumers: map[string][]scenario.Consumer{
			"shop/used": {{Name: "0", UID: "0"}, {Name: "x", UID: "x"}, {Name: "y", UID: "y"}, {Name: "z", UID: "z"}},
		}}.Claim(kindNamed(t, "ResourceClaim"), o)["status"].(map[string]any)["reservedFor"].([]any)
		if given == 0 {
			want++ // the pod 0 is new
		}
		if len(got) != want {
			t.Errorf("%d reservations became %d, want %d", given, len(got), want)
		}
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
	s, err := scenario.Add(manifests(t, `{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c}],
		resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]}}`), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	err = scenario.ClaimTemplates{}.Check(&s.Workloads[0])
	if want := "Pod default/a: the ResourceClaimTemplate default/one is missing"; err == nil ||
		!strings.Contains(err.Error(), want) || !problem.IsInvalid(err) {
		t.Errorf("got %v, want %q", err, want)
	}
	templates := scenario.ClaimTemplates{}
	templates.Add(decode(t, `{"metadata":{"namespace":"default","name":"one"}}`))
	if err := templates.Check(&s.Workloads[0]); err != nil {
		t.Errorf("with the template: %v", err)
	}
}

// A claim is made if the pod has none, or if it is gone. Its name is the name of the pod and of the
// claim in the pod, shortened together, and five characters.
func TestClaimsAreMadeFromTemplates(t *testing.T) {
	templates := scenario.ClaimTemplates{}
	templates.Add(decode(t, `{"apiVersion":"resource.k8s.io/v1beta1","kind":"ResourceClaimTemplate",
		"metadata":{"namespace":"shop","name":"one"},
		"spec":{"metadata":{"labels":{"team":"a"}},"spec":{"devices":{"requests":[{"name":"gpu","deviceClassName":"gpu"}]}}}}`))
	const claim = `"resourceClaims":[{"name":"gpu","resourceClaimTemplateName":"one"}]`
	long := strings.Repeat("web", 20)
	for name, tc := range map[string]struct {
		name, spec, status string
		made               string // a prefix of its name
		missing            []string
	}{
		"no claim":               {"web", `{}`, `{}`, "", nil},
		"a claim":                {"web", `{` + claim + `}`, `{}`, "web-gpu-", nil},
		"up to 1.30":             {"web", `{"resourceClaims":[{"name":"gpu","source":{"resourceClaimTemplateName":"one"}}]}`, `{}`, "web-gpu-", nil},
		"a claim that exists":    {"web", `{` + claim + `}`, `{"resourceClaimStatuses":[{"name":"gpu","resourceClaimName":"there"}]}`, "", nil},
		"a claim that is gone":   {"web", `{` + claim + `}`, `{"resourceClaimStatuses":[{"name":"gpu","resourceClaimName":"gone"}]}`, "web-gpu-", nil},
		"a claim of its own":     {"web", `{"resourceClaims":[{"name":"gpu","resourceClaimName":"shared"}]}`, `{}`, "", nil},
		"a template that is not": {"web", `{"resourceClaims":[{"name":"gpu","resourceClaimTemplateName":"two"}]}`, `{}`, "", []string{"shop/two"}},
		"a long name":            {long, `{` + claim + `}`, `{}`, long[:52] + "-gp", nil},
	} {
		t.Run(name, func(t *testing.T) {
			pod := decode(t, `{"metadata":{"namespace":"shop","name":"`+tc.name+`","uid":"p"},"spec":`+tc.spec+`,"status":`+tc.status+`}`)
			made, missing := templates.Make(pod, func(name string) bool { return name == "there" })
			if diff := cmp.Diff(tc.missing, missing); diff != "" || len(made) > 1 || (tc.made == "") != (len(made) == 0) {
				t.Fatalf("made %v, missing (-want +got):\n%s", made, diff)
			}
			if tc.made == "" {
				return
			}
			_, claim := scenario.NameOf(made[0].Fields)
			if !strings.HasPrefix(claim, tc.made) || len(claim) != len(tc.made)+5 {
				t.Errorf("name %q, want %q and 5 characters", claim, tc.made)
			}
			if diff := cmp.Diff([]string{claim}, scenario.ClaimsOf(pod)); diff != "" {
				t.Errorf("claims of the pod (-want +got):\n%s", diff)
			}
			want := decode(t, `{"apiVersion":"resource.k8s.io/v1beta1","kind":"ResourceClaim","metadata":{"labels":{"team":"a"},
				"annotations":{"resource.kubernetes.io/pod-claim-name":"gpu"},"ownerReferences":[{"apiVersion":"v1","kind":"Pod",
				"name":"`+tc.name+`","uid":"p","controller":true}],"name":"`+claim+`","namespace":"shop"},
				"spec":{"devices":{"requests":[{"name":"gpu","deviceClassName":"gpu"}]}}}`)
			got := made[0].Fields
			delete(got["metadata"].(map[string]any), "uid")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
