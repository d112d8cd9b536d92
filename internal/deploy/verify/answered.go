package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/metrics"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
)

const (
	// metricsTime bounds the time to read a page from one pod.
	metricsTime = 5 * time.Second
	// requestsMetric is the counter for pmk-extender's requests.
	requestsMetric = "pmk_extender_requests_total"
	// answeredPath is the page of pmk-extender that reports the verbs that it has answered for a
	// verification's pod (serveAnswered in scheduler/extender/probes.go).
	answeredPath = "/answered"
)

// observation is what can be read from an extender before the pod is created.
type observation struct {
	// exact is set if the extender reports the pods that it has answered for.
	exact bool
	// counted is the number of requests that it has answered, if it only counts them.
	counted int
	// err is the reason why neither can be read.
	err error
}

// doubt returns why a call that called reports is not proven, or "".
func (s observation) doubt() string {
	if s.exact {
		return ""
	}
	return "it answered requests, but this version of it does not report for which pods, so that another caller may have " +
		"sent them; deploy it with a current image"
}

// observe reads from the extender what called compares.
func (e *extenderVerifier) observe(ctx context.Context) observation {
	// No pod has the namespace's name as its UID.
	_, err := e.answeredFor(ctx, e.result.Namespace)
	if !errors.As(err, new(*noReportError)) {
		return observation{exact: err == nil, err: err}
	}
	counted, err := e.requests(ctx)
	return observation{counted: counted, err: err}
}

// called reports whether the extender has answered a request for the pod, or any request since the
// observation if it only counts them.
func (e *extenderVerifier) called(ctx context.Context, pod *corev1.Pod, before observation) (bool, error) {
	if before.exact {
		return e.answeredFor(ctx, string(pod.UID))
	}
	now, err := e.requests(ctx)
	return err == nil && now > before.counted, err
}

// noReportError is returned for an extender that does not report the pods that it has answered for.
type noReportError struct{ pod string }

// Error names the pod.
func (e *noReportError) Error() string { return "Pod/" + e.pod + " has no page " + answeredPath }

// answeredFor reports whether one of the extender's pods has answered a request for the pod with
// that UID. If none has, the error is the first failure to read one, a [*noReportError] if it does
// not report it.
func (e *extenderVerifier) answeredFor(ctx context.Context, uid string) (bool, error) {
	pods, err := e.extenderPods(ctx)
	if err != nil {
		return false, err
	}
	if len(pods) == 0 {
		return false, errNoneReady
	}
	var failed error
	for _, name := range pods {
		verbs, err := e.answeredVerbs(ctx, name, uid)
		if len(verbs) > 0 {
			return true, nil
		}
		if failed == nil {
			failed = err
		}
	}
	return false, failed
}

// answeredVerbs returns the verbs that one of the extender's pods has answered for the pod with
// that UID.
func (e *extenderVerifier) answeredVerbs(ctx context.Context, extender, uid string) ([]string, error) {
	text, err := e.page(ctx, extender, answeredPath, map[string]string{"pod": uid})
	var report struct {
		Pod   string   `json:"pod"`
		Verbs []string `json:"verbs"`
	}
	switch {
	// The second is the answer to any unknown path where client certificates are required.
	case apierrors.IsNotFound(err) || apierrors.IsUnauthorized(err):
		return nil, &noReportError{e.o.ExtenderNamespace + "/" + extender}
	case err != nil:
		return nil, fmt.Errorf("read %s of Pod/%s/%s: %w", answeredPath, e.o.ExtenderNamespace, extender, err)
	case json.Unmarshal([]byte(text), &report) != nil || report.Pod != uid:
		return nil, &noReportError{e.o.ExtenderNamespace + "/" + extender} // the server has a page for every path
	}
	return report.Verbs, nil
}

var errNoneReady = errors.New("no pod of it is ready")

// requests returns how many requests the extender's pods have answered.
func (e *extenderVerifier) requests(ctx context.Context) (int, error) {
	pods, err := e.extenderPods(ctx)
	if err != nil {
		return 0, err
	}
	sum, failed := 0, errNoneReady
	for _, name := range pods {
		text, err := e.page(ctx, name, "/metrics", nil)
		if err != nil {
			return 0, fmt.Errorf("read the metrics of Pod/%s/%s: %w", e.o.ExtenderNamespace, name, err)
		}
		sum, failed = sum+answered(text), nil
	}
	return sum, failed
}

// page reads a page from one of the extender's pods through the API server.
func (e *extenderVerifier) page(ctx context.Context, pod, path string, query map[string]string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, metricsTime)
	defer cancel()
	text, err := e.kube.CoreV1().Pods(e.o.ExtenderNamespace).ProxyGet("https", pod, strconv.Itoa(e.o.Port), path,
		query).DoRaw(ctx)
	return string(text), err
}

// extenderPods returns the names of the extender's ready pods.
func (e *extenderVerifier) extenderPods(ctx context.Context) ([]string, error) {
	selector := ownership.LabelName + "=" + ownership.Extender + "," + ownership.LabelInstance + "=" + e.o.Extender
	list, err := kubeapi.List(ctx, e.retry, "list pods of extender "+e.o.Extender,
		e.kube.CoreV1().Pods(e.o.ExtenderNamespace).List, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	var ready []string
	for i := range list.Items {
		// A Service does not send requests to a pod that is being deleted.
		if list.Items[i].DeletionTimestamp == nil && podstatus.Ready(&list.Items[i]) {
			ready = append(ready, list.Items[i].Name)
		}
	}
	return ready, nil
}

// answered sums up the requests that policies have answered, with a result or an error, in
// pmk-extender's metrics.
func answered(text string) int {
	results := metrics.Parse(text).SumBy(requestsMetric, "result")
	return int(results["ok"] + results["error"])
}
