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
	pod       corev1.Pod
	counted   int
}

func (a *answering) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var answer any
	switch path := strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/"); {
	case r.Method == http.MethodPost && path == "probe/pods":
		if err := json.NewDecoder(r.Body).Decode(&a.pod); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
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
	default:
		answer = struct{}{} // an empty list
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// The extender answers another caller all the time. The scheduler calls it only if the outcome of
// the probe's pod shows it.
func TestRequestsOfAnotherCallerProveNothing(t *testing.T) {
	const url = "https://10.0.0.7"
	failed := func(message string) *corev1.PodCondition {
		return &corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: message}
	}
	for name, tc := range map[string]struct {
		condition *corev1.PodCondition
		node      string
		// want is a part of the error.
		want string
	}{
		"the call failed": {condition: failed(`Post "` + url + `/filter": dial tcp: i/o timeout`),
			want: "i/o timeout"},
		"no outcome":               {want: "within 1s"},
		"rejected by the extender": {condition: failed("0/1 nodes are available: 1 blockall")},
		"bound":                    {node: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(&answering{condition: tc.condition, node: tc.node})
			defer server.Close()
			kube, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL,
				ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}})
			if err != nil {
				t.Fatal(err)
			}
			e := &extenderVerifier{
				verifier: &verifier{Options: Options{Name: "s", Namespace: "ext", Image: "pause", Timeout: time.Second,
					Log: zap.NewNop()}, kube: kube, retry: &kubeapi.Retrier{}, result: &Result{Namespace: "probe", Pod: podName}},
				o: ExtenderOptions{Extender: "ext", ExtenderNamespace: "ext", URL: url, Filters: true},
			}
			unknown, err := e.run(t.Context())
			var notReached *NotReachedError
			if errors.As(err, &notReached) != (tc.want != "") || unknown != "" ||
				err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("unknown %q, error %v, want %q", unknown, err, tc.want)
			}
		})
	}
}
