package noderun

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// testServer is the transport of a client. It simulates an API server with the objects of one task,
// and a kubelet that sets the status of the pod.
type testServer struct {
	mu sync.Mutex
	// kubelet is called with the pod before it is read; looks counts the calls.
	kubelet func(pod *corev1.Pod, looks int)
	looks   int
	pod     *corev1.Pod
	secret  bool
	// calls are the changes, in their order.
	calls []string
	// undoes is how many looks a deleted pod that still runs stays.
	undoes int
}

func (s *testServer) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := path.Base(req.URL.Path)
	if req.Method != http.MethodPost {
		kind = path.Base(path.Dir(req.URL.Path))
	}
	if req.Method != http.MethodGet {
		s.calls = append(s.calls, req.Method+" "+kind)
	}
	switch {
	case kind == "secrets":
		s.secret = req.Method == http.MethodPost
		return answer(req, http.StatusOK, &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}})
	case req.Method == http.MethodPost:
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		s.pod = &corev1.Pod{}
		if err := json.Unmarshal(body, s.pod); err != nil {
			return nil, err
		}
		s.looks = 0
	case s.pod == nil:
		return notFound(req)
	case req.Method == http.MethodDelete:
		now := metav1.Now()
		s.pod.DeletionTimestamp = &now
	default:
		s.look()
	}
	if s.pod == nil {
		return notFound(req)
	}
	pod := s.pod.DeepCopy()
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	return answer(req, http.StatusOK, pod)
}

func notFound(req *http.Request) (*http.Response, error) {
	return answer(req, http.StatusNotFound, &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
}

// look lets the kubelet do its work.
func (s *testServer) look() {
	if s.pod.DeletionTimestamp != nil {
		if s.undoes--; s.undoes < 0 {
			s.pod = nil
		}
		return
	}
	s.looks++
	s.kubelet(s.pod, s.looks)
}

func answer(req *http.Request, status int, object any) (*http.Response, error) {
	text, err := json.Marshal(object)
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req, ContentLength: int64(len(text)),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)),
	}, err
}

func (s *testServer) runner(t *testing.T) *Runner {
	t.Helper()
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: "http://cluster", Transport: s, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	r := New(kube, zap.NewNop())
	r.poll = time.Millisecond
	return r
}

// left fails the test if a run left a pod or a Secret behind.
func (s *testServer) left(t *testing.T) {
	t.Helper()
	if s.pod != nil || s.secret {
		t.Errorf("left: pod %v, Secret %v", s.pod != nil, s.secret)
	}
}

// reports is a kubelet that runs the pod and ends it with a message.
func reports(message string) func(*corev1.Pod, int) {
	return func(pod *corev1.Pod, looks int) {
		switch {
		case looks > 2:
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{ends(mainContainer, 0, message)}
		case looks > 1:
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{runs(mainContainer)}
		}
	}
}

func TestTheReportOfAPodIsReadAndThePodRemoved(t *testing.T) {
	s := &testServer{kubelet: reports(`{"result":{"node":"cp-1"},"warnings":["w"]}`)}
	report, err := s.runner(t).Run(t.Context(), replaceTask())
	if err != nil || string(report.Result) != `{"node":"cp-1"}` {
		t.Fatalf("got %+v, %v", report, err)
	}
	s.left(t)
	want := []string{"DELETE secrets", "POST secrets", "POST pods", "DELETE pods", "DELETE secrets"}
	if diff := cmp.Diff(want, s.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestAPodThatFailsIsExplainedAndRemoved(t *testing.T) {
	for name, c := range map[string]struct {
		kubelet func(*corev1.Pod, int)
		want    string
		hint    bool
	}{
		"no report": {kubelet: reports("panic: x"), want: "node CP-1.example.com: it ended without a report: panic: x"},
		"killed":    {kubelet: reports(""), want: "it exited with code 0"},
		"a wrong image": {kubelet: func(pod *corev1.Pod, _ int) {
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{waits(toolContainer, "InvalidImageName")}
		}, want: "container tool (image i) does not start", hint: true},
		"rejected": {kubelet: func(pod *corev1.Pod,
			_ int) {
			pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "OutOfpods"
		}, want: "the kubelet ended it: OutOfpods", hint: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &testServer{kubelet: c.kubelet}
			_, err := s.runner(t).Run(t.Context(), replaceTask())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			if hinted := slices.ContainsFunc(problem.Hints(err),
				func(h string) bool { return strings.Contains(h, "this node was not changed") }); hinted != c.hint {
				t.Errorf("hints %q", problem.Hints(err))
			}
			s.left(t)
		})
	}
}

// An interrupted run ends the pod, and waits for the undo in it.
func TestAnInterruptedRunWaitsUntilThePodHasUndoneItsWork(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &testServer{undoes: 20}
	s.kubelet = func(pod *corev1.Pod, looks int) {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{runs(mainContainer)}
		if looks == 3 {
			cancel()
		}
	}
	_, err := s.runner(t).Run(ctx, replaceTask())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if s.undoes >= 0 {
		t.Errorf("the run ended %d looks before the pod", s.undoes)
	}
	s.left(t)
}

// The pod of a killed run finishes its work before the next pod starts on the node.
func TestAPodOfAKilledRunIsWaitedFor(t *testing.T) {
	for name, end := range map[string]func(*corev1.Pod, int){
		"that succeeds": reports(`{"result":{}}`),
		"that fails":    reports(""),
		"that cannot start": func(pod *corev1.Pod, _ int) {
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{waits(toolContainer, "InvalidImageName")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &testServer{pod: replaceTask().Pod(), secret: true}
			s.kubelet = func(pod *corev1.Pod, looks int) {
				if slices.Contains(s.calls, "POST pods") {
					reports(`{"result":{"node":"second"}}`)(pod, looks)
					return
				}
				end(pod, looks)
			}
			report, err := s.runner(t).Run(t.Context(), replaceTask())
			if err != nil || string(report.Result) != `{"node":"second"}` {
				t.Fatalf("got %+v, %v", report, err)
			}
			want := []string{"DELETE pods", "DELETE secrets", "DELETE secrets", "POST secrets", "POST pods", "DELETE pods",
				"DELETE secrets"}
			if diff := cmp.Diff(want, s.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			s.left(t)
		})
	}
}
