package apply

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// restConfig names a cluster that is never asked.
func restConfig() *rest.Config { return &rest.Config{Host: "https://127.0.0.1:1"} }

func TestKeptRevisionsAreTheLastTenAndTheLastDeployed(t *testing.T) {
	cases := map[string]struct {
		total    int
		deployed []int
		want     []int
	}{
		"few":                          {3, []int{1}, []int{1, 2, 3}},
		"none":                         {0, nil, nil},
		"many":                         {12, []int{11}, []int{3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
		"many failures after it":       {12, []int{1, 2}, []int{3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 2}},
		"many, none of them a success": {11, nil, []int{2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var revisions []*Revision
			for i := range tc.total {
				r := &Revision{Number: i + 1, Status: Failed}
				if slices.Contains(tc.deployed, r.Number) {
					r.Status = Deployed
				}
				revisions = append(revisions, r)
			}
			var got []int
			for _, r := range keptOf(revisions) {
				got = append(got, r.Number)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("kept %v, want %v", got, tc.want)
			}
		})
	}
}

func TestRevisionThatIsDamagedKeepsWhatIsKnown(t *testing.T) {
	written := &Revision{Number: 1, Name: "x", Namespace: "a", Description: "d", By: "root@a",
		Origin: "rollback to revision 1"}
	good, err := encodeRevision(written, "me")
	if err != nil {
		t.Fatal(err)
	}
	others := object("ConfigMap", map[string]any{"a": "b"})
	others.SetLabels(ownership.Labels("y"))
	other, err := encodeRevision(&Revision{Number: 1, Name: "y", Namespace: "a",
		Objects: []*unstructured.Unstructured{others}}, "me")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"empty": "", "not compressed": "[]", "cut off": string(good.Data[revisionKey][:12]),
		"objects of another": string(other.Data[revisionKey]),
	} {
		t.Run(name, func(t *testing.T) {
			broken := good.DeepCopy()
			broken.Data[revisionKey] = []byte(data)
			r, err := decodeRevision(broken)
			if err != nil {
				t.Fatal(err)
			}
			if r.Damage == nil || len(r.Objects) > 0 || r.Number != 1 || r.Description != "d" || r.By != "root@a" ||
				r.Origin != "rollback to revision 1" {
				t.Errorf("read as %+v", r)
			}
		})
	}
	if r, err := decodeRevision(good); err != nil || r.Damage != nil {
		t.Errorf("the undamaged one: %+v, %v", r, err)
	}
}

func TestMentionedLooksIntoDeploymentsOnly(t *testing.T) {
	spec := map[string]any{"volumes": []any{map[string]any{"configMap": map[string]any{"name": "used"}}}}
	deployment := object("Deployment", nil)
	deployment.Object["spec"] = spec
	other := object("Other", nil)
	other.Object["spec"] = map[string]any{"name": "elsewhere"}
	for name, want := range map[string]bool{"used": true, "use": false, "elsewhere": false} {
		if got := mentioned([]*unstructured.Unstructured{deployment, other}, name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
