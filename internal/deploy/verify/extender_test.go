package verify

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// answering is an API server with the pod of an extender, which counts a request of another caller
// whenever its metrics are read. It decides about the pod of the probe when it is created.
type answering struct {
	condition *corev1.PodCondition
	node      string
	// reports is whether the extender reports the pods that it has answered for, called whether the
	// scheduler has called it for the pod of the probe, and everyPage whether it has a page for every
	// path. It does not answer any more when the pod exists if stops is set.
	reports, called, everyPage, stops bool
	pod                               corev1.Pod
	counted                           int
}

func (a *answering) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var answer any
	switch path := strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/"); {
	case r.Method == http.MethodPost && path == "probe/pods":
		if err := json.NewDecoder(r.Body).Decode(&a.pod); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a.pod.UID = "uid-of-the-probe"
		if a.pod.Spec.NodeName = a.node; a.condition != nil {
			a.pod.Status.Conditions = append(a.pod.Status.Conditions, *a.condition)
		}
		answer = &a.pod
	case path == "probe/pods/"+podName:
		answer = &a.pod
	case path == "probe/events":
		answer = &corev1.EventList{}
	case path == "ext/pods" && strings.Contains(r.URL.RawQuery, ownership.Extender):
		answer = &corev1.PodList{Items: []corev1.Pod{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ext", Name: "ext-1"},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue},
			}},
		}}}
	case path == "ext/pods":
		answer = &corev1.PodList{}
	case strings.HasSuffix(path, "/metrics"):
		a.counted++
		_, _ = fmt.Fprintf(w, "%s{verb=\"filter\",result=\"ok\"} %d\n", requestsMetric, a.counted)
		return
	case strings.HasSuffix(path, answeredPath) && !a.everyPage:
		switch {
		case !a.reports:
			http.NotFound(w, r)
			return
		case a.stops && a.pod.UID != "":
			http.Error(w, "no endpoint", http.StatusServiceUnavailable)
			return
		}
		uid, verbs := r.URL.Query().Get("pod"), []string{}
		if a.called && uid == string(a.pod.UID) {
			verbs = append(verbs, "filter")
		}
		answer = map[string]any{"pod": uid, "verbs": verbs}
	default:
		answer = struct{}{} // an empty list
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// The extender answers another caller all the time. The scheduler calls it only if the extender
// reports it, or if the outcome of the probe's pod shows it.
func TestRequestsOfAnotherCallerProveNothing(t *testing.T) {
	const url = "https://10.0.0.7"
	failed := func(message string) *corev1.PodCondition {
		return &corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: message}
	}
	rejected := failed("0/1 nodes are available: 1 node(s) had taints")
	for name, tc := range map[string]struct {
		api      answering
		required bool
		// want is a part of the error, and unknown of the reason why nothing is proven.
		want, unknown string
	}{
		"the call failed": {api: answering{condition: failed(`Post "` + url + `/filter": dial tcp: i/o timeout`)},
			want: "i/o timeout"},
		"no outcome":        {want: "within 1s"},
		"rejected, called":  {api: answering{condition: rejected, reports: true, called: true}},
		"rejected before":   {api: answering{condition: rejected, reports: true}, want: "no request for the pod within 1s"},
		"bound, called":     {api: answering{node: "a", reports: true, called: true}},
		"bound without it":  {api: answering{node: "a", reports: true}, want: "answered no request for it"},
		"bound, unreadable": {api: answering{node: "a", reports: true, stops: true}, unknown: "cannot be read"},
		"bound, required":   {api: answering{node: "a"}, required: true},
		// Extenders that only count: the requests may be of another caller.
		"rejected, counted":             {api: answering{condition: rejected}, unknown: "another caller"},
		"bound, counted":                {api: answering{node: "a"}, unknown: "another caller"},
		"bound, counted, with any page": {api: answering{node: "a", everyPage: true}, unknown: "another caller"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(&tc.api)
			defer server.Close()
			kube, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL,
				ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}})
			if err != nil {
				t.Fatal(err)
			}
			e := &extenderVerifier{
				verifier: &verifier{Options: Options{Name: "s", Namespace: "ext", Image: "pause", Timeout: time.Second,
					Log: zap.NewNop()}, kube: kube, retry: &kubeapi.Retrier{}, result: &Result{Namespace: "probe", Pod: podName}},
				o: ExtenderOptions{Extender: "ext", ExtenderNamespace: "ext", URL: url, Filters: true, Required: tc.required},
			}
			unknown, err := e.run(t.Context())
			if errors.As(err, new(*NotReachedError)) != (tc.want != "") ||
				err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if (unknown != "") != (tc.unknown != "") || !strings.Contains(unknown, tc.unknown) {
				t.Errorf("unknown %q, want %q", unknown, tc.unknown)
			}
		})
	}
}
