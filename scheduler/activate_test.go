package scheduler_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// answering returns the client of an API server that answers every request with a status, and the
// last request.
func answering(t *testing.T, status int,
	reason metav1.StatusReason) (client kubernetes.Interface, last *http.Request, body *[]byte) {
	t.Helper()
	last, body = &http.Request{}, &[]byte{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*last = *r
		*body, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if status == http.StatusOK {
			fmt.Fprint(w, `{"kind": "Pod", "apiVersion": "v1"}`)
			return
		}
		fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": %d, "reason": %q}`, status,
			reason)
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client, last, body
}

func heldPod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u-1", ResourceVersion: "42"}}
}

func TestActivateChangesOnlyAnAnnotationOfThatPod(t *testing.T) {
	client, request, body := answering(t, http.StatusOK, "")
	if err := scheduler.ActivateByUpdate(t.Context(), client, heldPod()); err != nil {
		t.Fatal(err)
	}
	if got, want := request.Method+" "+request.URL.Path+" "+request.Header.Get("Content-Type"),
		"PATCH /api/v1/namespaces/shop/pods/web/status application/merge-patch+json"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var patch map[string]struct {
		UID         string            `json:"uid"`
		Annotations map[string]string `json:"annotations"`
	}
	if err := json.Unmarshal(*body, &patch); err != nil {
		t.Fatalf("%v: %s", err, *body)
	}
	at, err := time.Parse(time.RFC3339Nano, patch["metadata"].Annotations[scheduler.AnnotationActivated])
	if len(patch) != 1 || patch["metadata"].UID != "u-1" || len(patch["metadata"].Annotations) != 1 || err != nil ||
		time.Since(at) > time.Minute {
		t.Errorf("%v: %s", err, *body)
	}
}

func TestActivateIgnoresPodsThatAreGone(t *testing.T) {
	for _, c := range []struct {
		status int
		reason metav1.StatusReason
		fails  bool
	}{
		{http.StatusNotFound, metav1.StatusReasonNotFound, false},
		{http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, false}, // another uid
		{http.StatusConflict, metav1.StatusReasonConflict, false},
		{http.StatusForbidden, metav1.StatusReasonForbidden, true},
		{http.StatusInternalServerError, metav1.StatusReasonInternalError, true},
	} {
		client, _, _ := answering(t, c.status, c.reason)
		err := scheduler.ActivateByUpdate(t.Context(), client, heldPod())
		if (err != nil) != c.fails || c.fails && !strings.Contains(err.Error(), "activate pod shop/web") {
			t.Errorf("%s: got %v", c.reason, err)
		}
	}
}
