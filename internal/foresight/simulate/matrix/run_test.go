package matrix

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// testServer is the transport of a client whose API server has one Job. Its controller and kubelets
// are the function work.
type testServer struct {
	mu sync.Mutex
	// work is called before the pods are listed; looks counts that.
	work  func(s *testServer, looks int)
	looks int
	job   *batchv1.Job
	pods  []corev1.Pod
	logs  map[string]string // by pod
	// event is a warning about the Job.
	event      string
	deletions  int
	noDeletion bool
	noLogs     bool
	warnings   []string
}

func (s *testServer) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch kind := path.Base(req.URL.Path); {
	case req.Method == http.MethodPost:
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		s.job = &batchv1.Job{}
		if err := json.Unmarshal(body, s.job); err != nil {
			return nil, err
		}
		s.job.UID = "job"
		return answer(req, http.StatusCreated, s.job)
	case req.Method == http.MethodDelete:
		s.deletions++
		if s.noDeletion {
			return failure(req, http.StatusForbidden, metav1.StatusReasonForbidden)
		}
		s.job, s.pods = nil, nil
		return answer(req, http.StatusOK, &metav1.Status{TypeMeta: typeOf("v1", "Status"), Status: metav1.StatusSuccess})
	case kind == "events":
		return answer(req, http.StatusOK,
			&corev1.EventList{TypeMeta: typeOf("v1", "EventList"), Items: []corev1.Event{{Message: s.event}}})
	case kind == "log":
		if s.noLogs {
			return failure(req, http.StatusForbidden, metav1.StatusReasonForbidden)
		}
		text := s.logs[path.Base(path.Dir(req.URL.Path))]
		return &http.Response{StatusCode: http.StatusOK, Request: req, Header: http.Header{},
			Body: io.NopCloser(strings.NewReader(text))}, nil
	case kind == "pods":
		if s.job != nil {
			s.looks++
			s.work(s, s.looks)
		}
		return answer(req, http.StatusOK, &corev1.PodList{TypeMeta: typeOf("v1", "PodList"), Items: s.pods})
	}
	if s.job == nil {
		return failure(req, http.StatusNotFound, metav1.StatusReasonNotFound)
	}
	return answer(req, http.StatusOK, s.job)
}

func typeOf(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

func failure(req *http.Request, code int, reason metav1.StatusReason) (*http.Response, error) {
	return answer(req, code, &metav1.Status{TypeMeta: typeOf("v1", "Status"), Status: metav1.StatusFailure, Reason: reason,
		Code: int32(code)})
}

func answer(req *http.Request, status int, object any) (*http.Response, error) {
	text, err := json.Marshal(object)
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req, ContentLength: int64(len(text)),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)),
	}, err
}

// controller is the reference of a pod to the Job that created it.
func controller(uid types.UID) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: someJob().Name, UID: uid, Controller: &yes}
}

// pod adds a pod of a simulation, or changes the one with that name.
func (s *testServer) pod(index int, name string, phase corev1.PodPhase, status ...corev1.ContainerStatus) {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "simulations", UID: types.UID(name),
			Annotations:     map[string]string{batchv1.JobCompletionIndexAnnotation: fmt.Sprint(index)},
			OwnerReferences: []metav1.OwnerReference{controller("job")}},
		Spec: corev1.PodSpec{NodeName: "worker-1"}, Status: corev1.PodStatus{Phase: phase, ContainerStatuses: status},
	}
	for i := range s.pods {
		if s.pods[i].Name == name {
			s.pods[i] = p
			return
		}
	}
	s.pods = append(s.pods, p)
}

// succeed ends a pod with an outcome in its log.
func (s *testServer) succeed(t *testing.T, index int, name string) {
	s.pod(index, name, corev1.PodSucceeded)
	s.logs[name] = strings.Join(written(t, index, someOutcome(index+1)), "") + "\n"
}

func (s *testServer) run(ctx context.Context, t *testing.T, cells int) ([]Outcome, map[int]string, error) {
	t.Helper()
	s.logs = map[string]string{}
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: "http://cluster", Transport: s, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	r := newRunner(kube, zap.NewNop(), func(text string) { s.warnings = append(s.warnings, text) })
	r.poll, r.startGrace, r.roomGrace = time.Millisecond, 200*time.Millisecond, 600*time.Millisecond
	j := someJob()
	j.Cells = cells
	steps := map[int]string{}
	outcomes, err := r.Run(ctx, j, func(index int) func(error) {
		steps[index] = "started"
		return func(err error) { steps[index] = fmt.Sprint(err) }
	})
	if s.deletions == 0 {
		t.Error("the Job was not deleted")
	}
	return outcomes, steps, err
}

// wantResult checks that the pod of the simulation wrote the outcome.
func wantResult(t *testing.T, outcomes []Outcome, index int) {
	t.Helper()
	if got := outcomes[index]; got.Error != "" || got.Result == nil || got.Result.Summary.Placed != index+1 {
		t.Errorf("simulation %d: %+v", index, got)
	}
}

// wantError checks the error of a simulation and its hint.
func wantError(t *testing.T, o Outcome, hint string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if o.Result != nil || !strings.Contains(o.Error, text) {
			t.Errorf("got %+v, want an error with %q", o, text)
		}
	}
	if !strings.Contains(strings.Join(o.Hints, "\n"), hint) {
		t.Errorf("hints %q lack %q", o.Hints, hint)
	}
}

func TestOutcomesAreThoseOfTheIndexesOfThePods(t *testing.T) {
	s := &testServer{}
	s.work = func(s *testServer, looks int) {
		switch looks {
		case 1:
			s.pod(2, "c", corev1.PodRunning)
		case 2:
			s.succeed(t, 2, "c")
			s.pod(0, "a", corev1.PodRunning)
		case 3:
			s.succeed(t, 1, "b") // it was not seen to run
			s.succeed(t, 0, "a")
		}
	}
	outcomes, steps, err := s.run(t.Context(), t, 3)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		wantResult(t, outcomes, i)
		if steps[i] != "<nil>" {
			t.Errorf("step %d: %s", i, steps[i])
		}
	}
}

// A pod that fails once is replaced; one that fails again, a log that stays incomplete and a pod
// that is gone are errors of their simulations only.
func TestFailedSimulationsDoNotLoseTheOthers(t *testing.T) {
	killed := corev1.ContainerStatus{
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}}
	s := &testServer{}
	s.work = func(s *testServer, looks int) {
		switch looks {
		case 1:
			s.pod(0, "a1", corev1.PodFailed, killed)
			s.pod(1, "b1", corev1.PodFailed, killed)
			s.succeed(t, 2, "c")
			s.logs["c"] = s.logs["c"][:len(s.logs["c"])/2]
			s.succeed(t, 3, "d")
			s.logs["d"], s.logs["end of d"] = "", s.logs["d"]
		case 2:
			s.succeed(t, 0, "a2")
			s.pod(1, "b2", corev1.PodFailed, killed)
			s.logs["d"] = s.logs["end of d"] // the runtime wrote it late
			s.job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue,
				Reason: "FailedIndexes", Message: "m"}}
		}
	}
	outcomes, steps, err := s.run(t.Context(), t, 5)
	if err != nil {
		t.Fatal(err)
	}
	wantResult(t, outcomes, 0)
	wantResult(t, outcomes, 3)
	wantError(t, outcomes[1], "lower --parallel", "b2", "worker-1", "2 times", "OOMKilled")
	wantError(t, outcomes[2], "containerLogMaxSize", "the log is incomplete")
	wantError(t, outcomes[4], "", "Job/simulations/pmk-sched-matrix-abc", "FailedIndexes")
	if steps[0] != "<nil>" || !strings.Contains(steps[1], "OOMKilled") {
		t.Errorf("steps %v", steps)
	}
}

// A user who may create pods in the namespace sees the labels and the annotation of the Job's pods.
func TestPodsThatTheJobDidNotCreateHaveNoOutcome(t *testing.T) {
	owned := controller("job")
	owned.Controller = nil
	for name, owners := range map[string][]metav1.OwnerReference{
		"no owner": nil, "another Job": {controller("another")}, "an owner that does not control it": {owned},
	} {
		s := &testServer{}
		s.work = func(s *testServer, looks int) {
			if looks <= 2 {
				s.succeed(t, 1, "forged")
				s.pods[0].OwnerReferences = owners
				s.pods[0].Annotations[batchv1.JobCompletionIndexAnnotation] = "0"
				s.logs["forged"] = strings.Join(written(t, 0, someOutcome(7)), "") + "\n"
				return
			}
			s.succeed(t, 0, "a")
		}
		outcomes, _, err := s.run(t.Context(), t, 1)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		wantResult(t, outcomes, 0)
		if len(s.warnings) != 1 || !strings.Contains(s.warnings[0], "pod simulations/forged") {
			t.Errorf("%s: warnings %q", name, s.warnings)
		}
	}
}

func TestAJobThatWasReplacedHasNoOutcome(t *testing.T) {
	s := &testServer{}
	s.work = func(s *testServer, looks int) {
		s.job.UID = "another"
		s.succeed(t, 0, "a")
		s.pods[0].OwnerReferences = []metav1.OwnerReference{controller("another")}
	}
	outcomes, _, err := s.run(t.Context(), t, 1)
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, outcomes[0], "", "deleted by another program")
}

func TestJobsWithoutARunningPodEnd(t *testing.T) {
	waiting := func(reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: "simulate", Image: "i",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
	}
	for name, c := range map[string]struct {
		work  func(s *testServer, looks int)
		hint  string
		texts []string
	}{
		"no image": {func(s *testServer, _ int) { s.pod(1, "b", corev1.PodPending, waiting("ErrImagePull", "not found")) },
			"--push", []string{"image i", "worker-1", "ErrImagePull", "not found"}},
		"no room": {func(s *testServer, _ int) {
			s.pod(1, "b", corev1.PodPending)
			s.pods[0].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
				Reason: corev1.PodReasonUnschedulable, Message: "Insufficient cpu"}}
		}, "lower --parallel", []string{"no node accepts pod b", "Insufficient cpu"}},
		"no pod": {func(s *testServer, _ int) { s.event = "exceeded quota" }, "quotas",
			[]string{"creates no pod: exceeded quota"}},
		"no kubelet": {func(s *testServer, _ int) { s.pod(1, "b", corev1.PodPending) }, "kubelet",
			[]string{"pod b has not started"}},
		"Job deleted": {func(s *testServer, _ int) { s.job = nil }, "", []string{"deleted by another program"}},
	} {
		s := &testServer{}
		s.work = func(s *testServer, looks int) {
			if looks == 1 {
				s.succeed(t, 0, "a")
				return
			}
			c.work(s, looks)
			s.pods = s.pods[max(0, len(s.pods)-1):]
		}
		if name == "no pod" {
			s.work = c.work
		}
		outcomes, _, err := s.run(t.Context(), t, 2)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Log(name, outcomes[1].Error)
		wantError(t, outcomes[1], c.hint, c.texts...)
		if name != "no pod" {
			wantResult(t, outcomes, 0)
		}
	}
}

func TestAnInterruptedRunDeletesTheJob(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &testServer{work: func(s *testServer, looks int) {
		s.pod(0, "a", corev1.PodRunning)
		if looks == 2 {
			cancel()
		}
	}}
	if outcomes, _, err := s.run(ctx, t, 1); !errors.Is(err, context.Canceled) || outcomes != nil || s.job != nil {
		t.Errorf("got %v, %v, Job %v", outcomes, err, s.job)
	}
}

func TestAJobThatCannotBeDeletedIsReportedWithTheOutcomes(t *testing.T) {
	s := &testServer{noDeletion: true}
	s.work = func(s *testServer, _ int) { s.succeed(t, 0, "a") }
	outcomes, _, err := s.run(t.Context(), t, 1)
	wantResult(t, outcomes, 0)
	if err == nil || !strings.Contains(strings.Join(problem.Hints(err), "\n"),
		"kubectl -n simulations delete job pmk-sched-matrix-abc") {
		t.Errorf("got %v", err)
	}
}

func TestLogsWithoutPermissionEndTheRun(t *testing.T) {
	s := &testServer{noLogs: true}
	s.work = func(s *testServer, _ int) { s.succeed(t, 0, "a") }
	if _, _, err := s.run(t.Context(), t, 2); !errors.As(err, new(*kubeapi.ForbiddenError)) || s.job != nil {
		t.Errorf("got %v, Job %v", err, s.job)
	}
}
