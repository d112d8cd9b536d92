package kubescheduler

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	corev1 "k8s.io/api/core/v1"
)

// call sends a request as a scheduler does.
func call(t *testing.T, url, schedulerName string, nodes ...string) extenderv1.ExtenderFilterResult {
	t.Helper()
	body, err := json.Marshal(extenderv1.ExtenderArgs{Pod: &corev1.Pod{Spec: corev1.PodSpec{SchedulerName: schedulerName}},
		NodeNames: &nodes})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/"+RecorderVerb, strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var result extenderv1.ExtenderFilterResult
	if err := json.NewDecoder(response.Body).Decode(&result); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", response.Status, err)
	}
	return result
}

func TestNodesAreRecordedForEachSchedulerAndStage(t *testing.T) {
	r, err := StartRecorder(func(name string) bool { return name == "probe" })
	if err != nil {
		t.Fatal(err)
	}
	if got := call(t, r.URL(0), "own", "a", "b"); !slices.Equal(*got.NodeNames, []string{"a", "b"}) ||
		len(got.FailedNodes) > 0 {
		t.Errorf("the nodes of a pod that is scheduled change: %+v", got)
	}
	call(t, r.URL(0), "own", "b") // tried again
	call(t, r.URL(1), "own", "b")
	if got := call(t, r.URL(0), "probe", "a"); len(*got.NodeNames) > 0 || got.FailedNodes["a"] != RecorderRefusal {
		t.Errorf("a probe is scheduled: %+v", got)
	}
	for _, tt := range []struct {
		name  string
		stage int
		want  []string
	}{{"own", 0, []string{"a", "b"}}, {"own", 1, []string{"b"}}, {"probe", 0, []string{"a"}}} {
		if got, ok := r.Passed(tt.name, tt.stage); !ok || !slices.Equal(got, tt.want) {
			t.Errorf("%s, stage %d: got %v, %t, want %v", tt.name, tt.stage, got, ok, tt.want)
		}
	}
	if _, ok := r.Passed("probe", 1); ok {
		t.Error("a stage that was not reached has nodes")
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestACallIsHeldUntilItIsReleased(t *testing.T) {
	r, err := StartRecorder(func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	called, release := r.Hold("held")
	call(t, r.URL(0), "other", "a")
	select {
	case <-called:
		t.Error("the call of another scheduler is taken for the held one")
	default:
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		call(t, r.URL(0), "held", "a")
	}()
	select {
	case <-called:
	case <-answered:
		t.Fatal("the call is answered before it is released")
	}
	release()
	release() // again, as a deferred call does
	<-answered
	call(t, r.URL(0), "held", "a")
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
