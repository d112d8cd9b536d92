package arbiter

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/flowcontrol"
)

// arbiterOf returns an arbiter that has led for an hour.
func arbiterOf(t *testing.T, pods ...*corev1.Pod) *Arbiter {
	t.Helper()
	a := &Arbiter{Options: Options{Namespace: "own", Log: zap.NewNop()}, synced: func() bool { return true },
		moves: flowcontrol.NewTokenBucketPassiveRateLimiter(movesPerSecond, movesAtOnce)}
	a.ledger, _ = ledgerOf(pods...)
	leads(a, time.Now().Add(-time.Hour))
	var err error
	if a.metrics, err = newMetrics(prometheus.NewRegistry(), a); err != nil {
		t.Fatal(err)
	}
	return a
}

// leads makes an arbiter lead since a time.
func leads(a *Arbiter, since time.Time) { a.leader = func() (time.Time, string) { return since, "" } }

// request returns the request to bind a pod.
func request(t *testing.T, pod *corev1.Pod, node string) *admissionv1.AdmissionRequest {
	t.Helper()
	raw, err := json.Marshal(corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID},
		Target: corev1.ObjectReference{Kind: "Node", Name: node}})
	if err != nil {
		t.Fatal(err)
	}
	return &admissionv1.AdmissionRequest{Operation: admissionv1.Create, Namespace: pod.Namespace, Name: pod.Name,
		Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, SubResource: "binding",
		Object: runtime.RawExtension{Raw: raw}}
}

func TestBindingsThatNoLongerFitAreRefused(t *testing.T) {
	first, second := podOf("a", "cpu", "1200m"), podOf("b", "cpu", "1200m")
	a := arbiterOf(t, first, second)
	if answer, elsewhere := a.Handle(t.Context(), "", request(t, first, "n")); !answer.Allowed || elsewhere {
		t.Fatalf("%+v, elsewhere %t", answer.Result, elsewhere)
	}
	answer, _ := a.Handle(t.Context(), "", request(t, second, "n"))
	if answer.Allowed || answer.Result.Code != http.StatusConflict ||
		answer.Result.Reason != metav1.StatusReasonConflict {
		t.Errorf("%+v", answer)
	}
	if answer.Result.Message != "node n has not enough cpu left for pod default/b: requested 1200m, left 800m; "+
		"the last pod that was bound there is default/a" {
		t.Errorf("%+v", answer)
	}
}

func TestWhichRequestsAreDecided(t *testing.T) {
	large := podOf("large", "cpu", "9")
	for name, c := range map[string]struct {
		change func(*Arbiter, *admissionv1.AdmissionRequest)
		want   string
	}{
		"the subresource of a pod": {func(*Arbiter, *admissionv1.AdmissionRequest) {}, string(Refused)},
		"a Binding": {func(_ *Arbiter, r *admissionv1.AdmissionRequest) {
			r.Resource.Resource, r.SubResource, r.Name = "bindings", "", ""
		}, string(Refused)},
		"a dry run": {func(_ *Arbiter, r *admissionv1.AdmissionRequest) { r.DryRun = new(true) }, string(Refused)},
		"passed on": {func(*Arbiter, *admissionv1.AdmissionRequest) {}, string(Refused)},
		"without a kind": {func(_ *Arbiter, r *admissionv1.AdmissionRequest) {
			r.Object.Raw = []byte(`{"target":{"name":"n"}}`)
		}, string(Refused)},
		"to something else": {func(_ *Arbiter, r *admissionv1.AdmissionRequest) {
			r.Object.Raw = []byte(`{"target":{"kind":"Machine","name":"n"}}`)
		}, resultExcluded},
		"a pod": {func(_ *Arbiter, r *admissionv1.AdmissionRequest) { r.SubResource = "" }, resultExcluded},
		"an update": {func(_ *Arbiter, r *admissionv1.AdmissionRequest) {
			r.Operation = admissionv1.Update
		}, resultExcluded},
		"of another group": {func(_ *Arbiter, r *admissionv1.AdmissionRequest) {
			r.Resource.Group = "example.com"
		}, resultExcluded},
		"in kube-system": {func(_ *Arbiter, r *admissionv1.AdmissionRequest) {
			r.Namespace = "kube-system"
		}, resultExcluded},
		"in the own namespace": {func(_ *Arbiter, r *admissionv1.AdmissionRequest) {
			r.Namespace = "own"
		}, resultExcluded},
		"no object": {func(_ *Arbiter, r *admissionv1.AdmissionRequest) { r.Object.Raw = nil }, resultError},
		"not leading": {func(a *Arbiter, _ *admissionv1.AdmissionRequest) {
			leads(a, time.Time{})
		}, resultNoLeader},
		"passed on by a replica that saw another leader": {func(a *Arbiter, _ *admissionv1.AdmissionRequest) {
			a.leader = func() (time.Time, string) { return time.Time{}, "127.0.0.1:1" }
		}, resultNoLeader},
		"leading at once": {func(a *Arbiter, _ *admissionv1.AdmissionRequest) {
			leads(a, time.Now())
		}, resultSettling},
		"not synced": {func(a *Arbiter, _ *admissionv1.AdmissionRequest) {
			a.synced = func() bool { return false }
		}, resultSettling},
	} {
		a, r := arbiterOf(t, large), request(t, large, "n")
		c.change(a, r)
		answer, got := a.answer(t.Context(), forwardedPath, r)
		if got != c.want || answer.Allowed == (c.want == string(Refused)) {
			t.Errorf("%s: %s, %+v", name, got, answer)
		}
	}
}

// The scheduler may have seen an event before the informer has.
func TestADecisionWaitsForEvents(t *testing.T) {
	late, gone, p := podOf("late", "cpu", "9"), on("n", podOf("gone", "cpu", "2")), podOf("p", "cpu", "2")
	a := arbiterOf(t, gone, p)
	time.AfterFunc(20*time.Millisecond, func() { a.ledger.SetPod(NewPod(late)) })
	if _, got := a.answer(t.Context(), "", request(t, late, "n")); got != string(Refused) {
		t.Errorf("a new pod: %s", got)
	}
	time.AfterFunc(20*time.Millisecond, func() { a.ledger.DeletePod(gone.UID) })
	if _, got := a.answer(t.Context(), "", request(t, p, "n")); got != string(Admitted) {
		t.Errorf("instead of a deleted pod: %s", got)
	}
	began := time.Now()
	if _, got := a.answer(t.Context(), "", request(t, podOf("never"), "n")); got != string(UnknownPod) ||
		time.Since(began) > 5*eventWait {
		t.Errorf("%s after %s", got, time.Since(began))
	}
}

func TestPodsWithoutWhatNoLedgerNeeds(t *testing.T) {
	object, err := compact(on("n", podOf("a", "cpu", "1")))
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := object.(*Pod); !ok || p.Node != "n" || p.Name != "a" || p.Need["cpu"] != 1000 || p.Need["pods"] != 1 {
		t.Errorf("%+v", object)
	}
	mirror := podOf("m")
	mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	if !NewPod(mirror).Critical || NewPod(podOf("a")).Critical {
		t.Error("which pods are critical")
	}
	object, err = compact("else")
	if err != nil || object != "else" {
		t.Error(object, err)
	}
}
