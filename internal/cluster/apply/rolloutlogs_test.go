package apply

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// While a failed container is replaced the kubelet answers a request for its log with the text of
// an error, and status 200.
func TestLogIsReadAgainWhileItsContainerIsReplaced(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		if requests < 3 {
			_, _ = fmt.Fprint(w, missingLog+"containerd://5f1c")
			return
		}
		_, _ = fmt.Fprint(w, "panic: boom\nexit\n")
	}))
	defer server.Close()
	c, err := New(&rest.Config{Host: server.URL}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "a"}}
	log := c.tailOf(t.Context(), pod, "kube-scheduler", true)
	if log.Err != nil || !slices.Equal(log.Lines, []string{"panic: boom", "exit"}) || requests != 3 {
		t.Errorf("%d requests, %+v", requests, log)
	}
}

// The error shows at most two pods: those that failed, if they are known.
func TestPodsOfAFailedRolloutThatAreShown(t *testing.T) {
	old := podOf("1", false, corev1.ContainerStatus{})
	s := &observation{deployment: availableDeployment(),
		replicaSets: []appsv1.ReplicaSet{replicaSet("1"), replicaSet("2")},
		pods:        []corev1.Pod{onNode("c", "a", true), onNode("b", "a", true), old, onNode("a", "a", true)}}
	for name, c := range map[string]struct {
		failed []string
		want   []string
	}{
		"any":            {nil, []string{"a", "b"}},
		"one has failed": {[]string{"c"}, []string{"c"}},
		"an old one":     {[]string{"p1"}, nil},
	} {
		var got []string
		for _, pod := range podsToShow(s, verdict{pods: c.failed}) {
			got = append(got, pod.Name)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestLastEventsAreShownOldestFirst(t *testing.T) {
	var events []corev1.Event
	for i := range int32(10) {
		events = append(events, corev1.Event{Type: "Warning", Reason: fmt.Sprint(i), Message: " failed\n", Count: i - 7,
			LastTimestamp: metav1.NewTime(start.Add(-time.Duration(i) * time.Second))})
	}
	want := []string{"Warning 7: failed", "Warning 6: failed", "Warning 5: failed", "Warning 4: failed",
		"Warning 3: failed", "Warning 2: failed", "Warning 1: failed", "Warning 0: failed"}
	if diff := cmp.Diff(want, eventLines(slices.Clone(events))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Warning 9: failed (2 times)", "Warning 8: failed"}, eventLines(events[8:])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if lines := eventLines(nil); len(lines) > 0 {
		t.Errorf("without events: %q", lines)
	}
}

func TestRolloutErrorShowsItsEvidence(t *testing.T) {
	err := &RolloutError{Deployment: "a/d", Reason: ReasonCrash, Message: "it crashed", Err: io.EOF,
		Events: []string{"Warning BackOff: x"}, Logs: []ContainerLog{
			{Pod: "p", Container: "c", Lines: []string{"one", "two"}}, {Pod: "p", Container: "c", Previous: true},
			{Pod: "q", Container: "c", Err: errors.New("no permission")},
		}}
	want := `Deployment/a/d failed (CrashLoopBackOff): it crashed
  events:
    Warning BackOff: x
  log, pod p, container c:
    one
    two
  log of the previous run, pod p, container c:
    (empty)
  log, pod q, container c:
    unavailable: no permission`
	if diff := cmp.Diff(want, err.Error()); diff != "" || !errors.Is(err, io.EOF) {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := (&RolloutError{Deployment: "a/d", Reason: ReasonGone, Message: "not found"}).Error(); got !=
		"Deployment/a/d failed (Gone): not found" {
		t.Errorf("without evidence: %s", got)
	}
	for _, reason := range []string{ReasonCrash, ReasonImagePull, ReasonImageName, ReasonContainerConfig,
		ReasonContainerStart, ReasonUnschedulable, ReasonPodFailed, ReasonPodsRejected, ReasonProgressDeadlineExceeded,
		ReasonGone, ReasonControllersIdle, ReasonTimeout} {
		if (&RolloutError{Reason: reason}).Hint() == "" {
			t.Errorf("no hint for %s", reason)
		}
	}
}
