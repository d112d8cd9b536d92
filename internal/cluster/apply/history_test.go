package apply

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
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
			var revisions []RevisionInfo
			for i := range tc.total {
				r := RevisionInfo{Number: i + 1, Status: Failed}
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
	written := &Revision{RevisionInfo: RevisionInfo{Number: 1, Name: "x", Namespace: "a", Description: "d",
		By: "root@a", Origin: "rollback to revision 1"}}
	good, err := encodeRevision(written, "me")
	if err != nil {
		t.Fatal(err)
	}
	others := object("ConfigMap", map[string]any{"a": "b"})
	others.SetLabels(ownership.Labels("y"))
	other, err := encodeRevision(&Revision{RevisionInfo: RevisionInfo{Number: 1, Name: "y", Namespace: "a"},
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
			r := read(broken)
			if r.Damage == nil || len(r.Objects) > 0 || r.Number != 1 || r.Description != "d" || r.By != "root@a" ||
				r.Origin != "rollback to revision 1" {
				t.Errorf("read as %+v", r)
			}
		})
	}
	if r := read(good); r.Damage != nil {
		t.Errorf("the undamaged one: %v", r.Damage)
	}
}

// read decodes revision 1 of a Secret.
func read(secret *corev1.Secret) *Revision {
	return decodeRevision(describeRevision(secret, 1), secret)
}

func TestNumbersOfRevisionsAreBounded(t *testing.T) {
	for label, want := range map[string]bool{"1": true, "1000000": true, "1000001": false, "0": false, "-1": false,
		"9223372036854775807": false, "9223372036854775808": false, "01": false, "a": false, "": false} {
		secret := &corev1.Secret{}
		secret.Name, secret.Labels = "pmk-sched-x-revision-"+label, map[string]string{ownership.LabelRevision: label}
		if number, ok := revisionNumber(secret, "x"); ok != want {
			t.Errorf("%q is number %d, %t", label, number, ok)
		}
		if _, ok := revisionNumber(secret, "y"); ok {
			t.Errorf("%q of another scheduler", label)
		}
	}
}

func TestTextsOfRevisionsAreBounded(t *testing.T) {
	secret := &corev1.Secret{}
	long := strings.Repeat("ä", 100_000)
	secret.Annotations = map[string]string{annotationText: long, annotationBy: long, annotationOrigin: long,
		annotationReason: long}
	info := describeRevision(secret, 1)
	for _, text := range []string{info.Description, info.By, info.Origin, info.Reason} {
		if len(text) > maxText || !utf8.ValidString(text) {
			t.Errorf("%d bytes", len(text))
		}
	}
}

func TestOnlyTheNewestRevisionsAreConsidered(t *testing.T) {
	var revisions []RevisionInfo
	for number := 70; number > 0; number-- {
		revisions = append(revisions, RevisionInfo{Number: number})
	}
	got := newest(revisions)
	if len(got) != maxRevisions || got[0].Number != 21 || got[maxRevisions-1].Number != 70 {
		t.Errorf("%d revisions: %+v", len(got), got)
	}
}

// Everything that is stored can be read.
func TestRevisionThatCouldNotBeReadIsNotStored(t *testing.T) {
	var many []*unstructured.Unstructured
	for range maxObjects + 1 {
		many = append(many, object("ConfigMap", nil))
	}
	values := object("ConfigMap", nil)
	values.Object["list"] = slices.Repeat([]any{int64(0)}, maxValues+1)
	for name, tc := range map[string]struct {
		Revision
		want string
	}{
		"objects": {Revision{Objects: many}, "201 objects, the limit is 200"},
		"values":  {Revision{Objects: []*unstructured.Unstructured{values}}, "more than 50000 values"},
		"size": {Revision{Objects: []*unstructured.Unstructured{object("ConfigMap", map[string]any{
			"a": strings.Repeat("a", maxUnpacked)})}}, "larger than 8388608 bytes"},
		"record": {Revision{Record: []byte(`"` + strings.Repeat("a", maxUnpacked) + `"`)}, "record of scheduler x"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.Name = "x"
			_, err := encodeRevision(&tc.Revision, "me")
			if !problem.IsInvalid(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v", err)
			}
		})
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

func TestOnlyDataThatNothingRefersToIsUnneeded(t *testing.T) {
	named := func(kind, ns, name string) *unstructured.Unstructured {
		obj := object(kind, nil)
		obj.SetNamespace(ns)
		obj.SetName(name)
		return obj
	}
	deployment := named("Deployment", "a", "s")
	deployment.Object["spec"] = map[string]any{"volumes": []any{map[string]any{"secret": map[string]any{"name": "used"}}}}
	owned := []*unstructured.Unstructured{deployment, named("ConfigMap", "a", "old"), named("Secret", "a", "old"),
		named("ConfigMap", "a", "kept"), named("Secret", "a", "kept"), named("Secret", "a", "used"),
		named("ConfigMap", "b", "old"), named("Role", "a", "old")}
	var got []string
	for _, obj := range unneeded(owned, "a", map[string]bool{"ConfigMap/a/kept": true}) {
		got = append(got, nameOf(obj))
	}
	if want := []string{"ConfigMap/a/old", "Secret/a/old", "Secret/a/kept"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSizeOfWhatIsListed(t *testing.T) {
	secret := object("Secret", map[string]any{"a": "1234", "b": "56"})
	secret.Object["binaryData"] = map[string]any{"c": "789"}
	secret.SetAnnotations(map[string]string{"d": "0"})
	for kind, want := range map[string]int{"Secret": 10, "ConfigMap": 10, "Role": 1} {
		secret.SetKind(kind)
		if got := sizeOf(secret); got != want {
			t.Errorf("%s: %d bytes, want %d", kind, got, want)
		}
	}
}

// failing fails to read any object.
type failing struct {
	client.Client
	err error
}

func (f failing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return f.err
}

// Revisions are listed and read in separate requests, and another run may prune them in between.
func TestRevisionThatWasDeletedAfterItWasListedIsDamaged(t *testing.T) {
	info := RevisionInfo{Number: 2, Name: "s", Namespace: "kube-system", Status: Deployed}
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "pmk-sched-s-revision-2")
	r, err := (&Client{api: failing{err: gone}}).ReadRevision(t.Context(), info)
	if err != nil || r.RevisionInfo != info || !errors.Is(r.Damage, gone) {
		t.Errorf("deleted: got %v, %v", r, err)
	}
	away := errors.New("unavailable")
	if r, err := (&Client{api: failing{err: away}}).ReadRevision(t.Context(), info); r != nil || !errors.Is(err, away) {
		t.Errorf("unavailable: got %v, %v", r, err)
	}
}
