package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var start = time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func stamp(seconds int) string { return at(seconds).Format("2006-01-02T15:04:05.000000Z07:00") }

func received(id, pod string, seconds int) string {
	return fmt.Sprintf(
		`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Request","auditID":%q,"stage":"RequestReceived","verb":"create","objectRef":{"resource":"pods","namespace":"default","name":%q,"apiVersion":"v1","subresource":"binding"},"requestReceivedTimestamp":%q,"stageTimestamp":%q}`,
		id, pod, stamp(seconds), stamp(seconds)) + "\n"
}

func complete(id, pod, node string, code, seconds int) string {
	return fmt.Sprintf(
		`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Request","auditID":%q,"stage":"ResponseComplete","verb":"create","objectRef":{"resource":"pods","namespace":"default","name":%q,"apiVersion":"v1","subresource":"binding"},"responseStatus":{"metadata":{},"code":%d},"requestObject":{"kind":"Binding","apiVersion":"v1","metadata":{"name":%q,"namespace":"default"},"target":{"kind":"Node","name":%q}},"requestReceivedTimestamp":%q,"stageTimestamp":%q}`,
		id, pod, code, pod, node, stamp(seconds), stamp(seconds+1)) + "\n"
}

func renewed(verb, lease, holder string, code, seconds int) string {
	name := fmt.Sprintf(`"name":%q,`, lease)
	if verb == "create" { // the URL does not have it
		name = ""
	}
	return fmt.Sprintf(
		`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Request","auditID":"r","stage":"ResponseComplete","verb":%q,"objectRef":{"resource":"leases","namespace":"kube-system",%s"apiGroup":"coordination.k8s.io"},"responseStatus":{"metadata":{},"code":%d},"requestObject":{"kind":"Lease","metadata":{"name":%q},"spec":{"holderIdentity":%q}},"requestReceivedTimestamp":%q,"stageTimestamp":%q}`,
		verb, name, code, lease, holder, stamp(seconds), stamp(seconds)) + "\n"
}

// write makes each text the log of an API server: of node 0, 1, …
func write(t *testing.T, texts ...string) (files []File) {
	t.Helper()
	for i, text := range texts {
		file := filepath.Join(t.TempDir(), fmt.Sprint(i))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, File{fmt.Sprint(i), file})
	}
	return files
}

// The logs of two API servers, one of which was killed: a request without a response, and a line
// that was not finished.
func TestRead(t *testing.T) {
	got, err := Read(write(t,
		renewed("create", "kube-scheduler", "a_1", 201, 0)+received("1", "first", 2)+complete("1", "first", "w1", 201, 2)+
			received("3", "third", 6)+`{"kind":"Ev`,
		renewed("update", "kube-scheduler", "b_2", 409, 1)+renewed("update", "kube-scheduler", "b_2", 200, 9)+received("2",
			"second", 4)+complete("2", "second", "w2", 409, 4))...)
	if err != nil {
		t.Fatal(err)
	}
	want := Log{
		Bindings: []Binding{{"default/first", "w1", 201, at(2), "0"}, {"default/second", "w2", 409, at(4), "1"},
			{"default/third", "", 0, at(6), "0"}},
		Renewals: []Renewal{{"kube-scheduler", "a_1", at(0)}, {"kube-scheduler", "b_2", at(9)}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if refused, unknown := got.Count(); refused != 1 || unknown != 1 || len(got.Of("default/").Bindings) != 3 ||
		len(got.Of("default/f").Bindings) != 1 {
		t.Errorf("refused %d, unknown %d, in default %v, of f… %v", refused, unknown, got.Of("default/"),
			got.Of("default/f"))
	}
	if _, err := Read(write(t, "damaged\n")...); err == nil {
		t.Error("a damaged log is read")
	}
}

func TestNotOnce(t *testing.T) {
	bound := func(pod, node string, code int) Binding { return Binding{"default/" + pod, node, code, at(0), "a"} }
	for name, c := range map[string]struct {
		bindings []Binding
		pods     map[string]string
		want     []string
	}{
		"once": {[]Binding{bound("p", "w1", 201)}, map[string]string{"default/p": "w1"}, nil},
		"once after refusal": {[]Binding{bound("p", "w2", 409), bound("p", "w1", 201)}, map[string]string{"default/p": "w1"},
			nil},
		"killed before the response": {
			[]Binding{bound("p", "", 0)}, map[string]string{"default/p": "w1"}, nil,
		},
		"an error of the server after the binding took effect": {
			[]Binding{bound("p", "w1", 504)}, map[string]string{"default/p": "w1"}, nil,
		},
		"an error of the server, and another node": {
			[]Binding{bound("p", "w2", 504)}, map[string]string{"default/p": "w1"},
			[]string{"default/p is on w1, and no API server logged a binding to it"},
		},
		"twice": {[]Binding{bound("p", "w2", 201), bound("p", "w1", 201)}, map[string]string{"default/p": "w1"},
			[]string{"default/p was bound 2 times: w2, w1"}},
		"pending": {nil, map[string]string{"default/p": ""}, []string{"default/p has no node"}},
		"unlogged": {
			nil, map[string]string{"default/p": "w1"}, []string{"default/p is on w1, and no API server logged a binding to it"},
		},
		"elsewhere": {[]Binding{bound("p", "w2", 201)}, map[string]string{"default/p": "w1"},
			[]string{"default/p is on w1 and was bound to w2"}},
		"lost": {[]Binding{bound("p", "w2", 201)}, nil, []string{"default/p was bound and is lost"}},
	} {
		if diff := cmp.Diff(c.want, (Log{Bindings: c.bindings}).NotOnce(c.pods)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestNotByLeader(t *testing.T) {
	log := Log{
		Renewals: []Renewal{{"mine", "a_1", at(0)}, {"other", "c_3", at(5)}, {"mine", "", at(7)}, {"mine", "b_2", at(10)}},
		Bindings: []Binding{
			{"default/before", "w1", 201, at(1), "a"}, {"default/after", "w1", 201, at(11), "b"}, {"default/stale", "w1", 201,
				at(12), "a"},
			{"default/early", "w1", 201, at(9), "b"}, {"default/late", "w1", 201, at(8), "a"}, {"default/refused", "w1", 409,
				at(12), "a"},
		},
	}
	want := []string{
		`default/stale was bound by a at 2026-01-02T03:04:12Z, when "b_2" held the lease`,
		`default/early was bound by b at 2026-01-02T03:04:09Z, when "a_1" held the lease`,
	}
	if diff := cmp.Diff(want, log.NotByLeader("mine")); diff != "" {
		t.Error(diff)
	}
}

func TestOvercommitted(t *testing.T) {
	node := func(name string) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourcePods: resource.MustParse("2"),
			}}}
	}
	pod := func(on, cpu string) corev1.Pod {
		return corev1.Pod{Spec: corev1.PodSpec{NodeName: on,
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
			}}}}}
	}
	got := Overcommitted([]corev1.Node{node("full"), node("cpu"), node("pods")}, []corev1.Pod{
		pod("full", "400m"), pod("full", "600m"), pod("cpu", "1001m"), pod("pods", "1m"), pod("pods", "1m"), pod("pods",
			"1m"),
	})
	want := []string{"node cpu has 1 of cpu, and its pods request 1001m",
		"node pods has 2 of pods, and its pods request 3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
