package apply

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

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
