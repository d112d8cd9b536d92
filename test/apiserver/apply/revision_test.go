//go:build linux

package apply_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
)

// save writes a revision and ends it with status, unless that is pending.
func save(ctx context.Context, t *testing.T, client *apply.Client, name, ns, data string,
	status apply.RevisionStatus) *apply.Revision {
	t.Helper()
	r, err := client.SaveRevision(ctx, apply.Revision{
		RevisionInfo: apply.RevisionInfo{Name: name, Namespace: ns, Description: "data " + data, By: "me@here"},
		Objects:      objects(t, name, ns, data),
	})
	if err != nil {
		t.Fatal(err)
	}
	if status != apply.Pending {
		if err := client.SetRevisionStatus(ctx, &r.RevisionInfo, status, "because"); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func TestRevisionsAreKeptWithTheirObjectsAndStatus(t *testing.T) {
	ctx, client, ns := testContext(t), newClient(t, server.Config()), server.Namespace(t)
	if none, err := client.Revisions(ctx, ns, "kept"); err != nil || len(none) != 0 || apply.LastDeployed(none) != nil {
		t.Fatalf("before any: %v, %v", none, err)
	}
	save(ctx, t, client, "kept", ns, "a", apply.Deployed)
	save(ctx, t, client, "kept", ns, "b", apply.Pending)
	save(ctx, t, client, "kept", ns, "c", apply.Failed)

	revisions, err := client.Revisions(ctx, ns, "kept")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range revisions {
		got = append(got, fmt.Sprintf("%d %s %q by %s %q %t", r.Number, r.Status, r.Description, r.By, r.Reason,
			r.Created.IsZero()))
	}
	want := []string{
		`1 deployed "data a" by me@here "because" false`,
		`2 failed "data b" by me@here "interrupted: the run ended without recording its result" false`,
		`3 failed "data c" by me@here "because" false`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
	last, err := client.LastDeployed(ctx, ns, "kept")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(objects(t, "kept", ns, "a"), last.Objects); diff != "" {
		t.Errorf("objects of the last deployed revision (-want +got):\n%s", diff)
	}
	if other, err := client.Revisions(ctx, ns, "other"); err != nil || len(other) != 0 {
		t.Errorf("revisions of another scheduler: %v, %v", other, err)
	}
}

func TestRevisionThatDoesNotFitIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	ctx, client, ns := testContext(t), newClient(t, server.Config()), server.Namespace(t)
	objs := objects(t, "large", ns, "a")
	noise := make([]byte, 3<<20)
	state := uint32(1)
	for i := range noise {
		state = state*1664525 + 1013904223
		noise[i] = 'a' + byte(state>>24)%26
	}
	if err := unstructured.SetNestedField(find(t, objs, "ConfigMap").Object, string(noise), "data",
		"large.yaml"); err != nil {
		t.Fatal(err)
	}
	_, err := client.SaveRevision(ctx, apply.Revision{RevisionInfo: apply.RevisionInfo{Name: "large", Namespace: ns},
		Objects: objs})
	if !problem.IsInvalid(err) || !strings.Contains(err.Error(), "the limit is 1048576") {
		t.Fatalf("error is %v", err)
	}
	if revisions, err := client.Revisions(ctx, ns, "large"); err != nil || len(revisions) != 0 {
		t.Errorf("a revision was written: %v, %v", revisions, err)
	}
}

func TestPruneKeepsTenRevisionsAndWhatTheyReferTo(t *testing.T) {
	ctx, client, ns := testContext(t), newClient(t, server.Config()), server.Namespace(t)
	for i := range 13 {
		data := fmt.Sprintf("v%d", i+1)
		status := apply.Failed
		if i == 0 {
			status = apply.Deployed
		}
		save(ctx, t, client, "pruned", ns, data, status)
		if _, err := client.Apply(ctx, objects(t, "pruned", ns, data)); err != nil {
			t.Fatal(err)
		}
	}
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "pruned-config-v2-copy"}}
	if _, err := server.Client(t).CoreV1().ConfigMaps(ns).Create(ctx, foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	changes, err := client.Prune(ctx, ns, "pruned")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer("NS", ns).Replace(`Secret/NS/pruned-credentials-v3 deleted
Secret/NS/pruned-credentials-v2 deleted
Secret/NS/pmk-sched-pruned-revision-3 deleted
Secret/NS/pmk-sched-pruned-revision-2 deleted
ConfigMap/NS/pruned-config-v3 deleted
ConfigMap/NS/pruned-config-v2 deleted
`)
	if diff := cmp.Diff(want, changes.String()); diff != "" {
		t.Errorf("pruned (-want +got):\n%s", diff)
	}
	if again, err := client.Prune(ctx, ns, "pruned"); err != nil || len(again) != 0 {
		t.Errorf("second time: %v\n%s", err, again)
	}
	if nothing, err := client.Prune(ctx, ns, "never-deployed"); err != nil || len(nothing) != 0 {
		t.Errorf("without revisions: %v\n%s", err, nothing)
	}
}

// Users who may write Secrets in the namespace can change a revision, or write one.
func TestDamagedAndForeignRevisionsAreNotDeployed(t *testing.T) {
	ctx, client, ns := testContext(t), newClient(t, server.Config()), server.Namespace(t)
	for _, data := range []string{"a", "b", "c"} {
		save(ctx, t, client, "edited", ns, data, apply.Deployed)
	}
	secrets := server.Client(t).CoreV1().Secrets(ns)
	foreign, err := client.SaveRevision(ctx,
		apply.Revision{RevisionInfo: apply.RevisionInfo{Name: "other", Namespace: ns},
			Objects: objects(t, "other", ns, "x")})
	if err != nil {
		t.Fatal(err)
	}
	stolen, err := secrets.Get(ctx, fmt.Sprintf("pmk-sched-other-revision-%d", foreign.Number), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	edit := func(number int, change func(*corev1.Secret)) {
		t.Helper()
		secret, err := secrets.Get(ctx, fmt.Sprintf("pmk-sched-edited-revision-%d", number), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		change(secret)
		if _, err := secrets.Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	edit(2, func(s *corev1.Secret) { s.Data["objects.json.gz"] = []byte("damaged") })
	edit(3, func(s *corev1.Secret) { s.Data = stolen.Data })
	alias := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "alias", Labels: stolen.Labels}, Type: stolen.Type,
		Data: stolen.Data}
	alias.Labels["app.kubernetes.io/instance"], alias.Labels["pmk-sched.io/revision"] = "edited", "9"
	if _, err := secrets.Create(ctx, alias, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	all, err := client.Revisions(ctx, ns, "edited")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, info := range all {
		r, err := client.ReadRevision(ctx, info)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%d %v", r.Number, r.Damage))
	}
	want := []string{
		"1 <nil>", "2 read revision of Secret/" + ns + "/pmk-sched-edited-revision-2: unpack: unexpected EOF",
		"3 read revision of Secret/" + ns + "/pmk-sched-edited-revision-3: ",
	}
	if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || !strings.HasPrefix(got[2], want[2]) ||
		!strings.Contains(got[2], "does not have the labels of the objects of edited") {
		t.Errorf("got %q, want %q", got, want)
	}
	if last, err := client.LastDeployed(ctx, ns, "edited"); err != nil || last.Number != 1 {
		t.Errorf("last deployed: %v, %v", last, err)
	}
}
