package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// page is the response of the extender's pod.
type page string

func (p page) DoRaw(context.Context) ([]byte, error) { return []byte(p), nil }

func (p page) Stream(context.Context) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(string(p))), nil
}

var _ rest.ResponseWrapper = page("")

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
			ready := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ext", Name: "ext-1", Labels: map[string]string{
					ownership.LabelName: ownership.Extender, ownership.LabelInstance: "ext",
				}},
				Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
			}
			kube, requests := fake.NewClientset(ready), 0
			kube.AddProxyReactor("*", func(clienttesting.Action) (bool, rest.ResponseWrapper, error) {
				requests++
				return true, page(fmt.Sprintf("%s{verb=\"filter\",result=\"ok\"} %d\n", requestsMetric, requests)), nil
			})
			kube.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
				pod := a.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
				pod.Spec.NodeName = tc.node
				if tc.condition != nil {
					pod.Status.Conditions = append(pod.Status.Conditions, *tc.condition)
				}
				return false, nil, nil
			})
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
