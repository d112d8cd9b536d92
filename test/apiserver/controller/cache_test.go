//go:build linux && cases

package controller

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
)

// lateWatches returns the address of a proxy of the API server that passes the events of the
// watches of a resource only after some time.
func lateWatches(t *testing.T, resource string, by time.Duration) string {
	t.Helper()
	pass := server.Proxy(t)
	pass.ModifyResponse = func(r *http.Response) error {
		if q := r.Request.URL; strings.HasSuffix(q.Path, resource) && q.Query().Has("watch") {
			r.Body = &late{r.Body, by}
		}
		return nil
	}
	proxy := httptest.NewServer(pass)
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
	})
	return proxy.URL
}

// late is a body that is read some time after it came.
type late struct {
	io.ReadCloser
	by time.Duration
}

func (l *late) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	time.Sleep(l.by)
	return n, err
}

// Whoever changes an object of a scheduler as soon as it is deployed meets a controller whose cache
// does not have the status yet: it is a repair all the same, and not the first deployment.
func TestStatusIsKnownBeforeTheCacheHasIt(t *testing.T) {
	w := newWorld(t, server)
	w.address = lateWatches(t, "/customschedulers", 3*time.Second)
	w.start(t, w.options())
	w.mustCreate(t, "late", specOf("localhost/scheduler:v1", ""))
	w.await(t, "late", v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed")
	if _, err := w.server.Client(t).AppsV1().Deployments(w.ns).Patch(t.Context(), "late", types.MergePatchType,
		[]byte(`{"spec":{"replicas":7}}`), metav1.PatchOptions{FieldManager: "someone"}); err != nil {
		t.Fatal(err)
	}
	w.await(t, "late", v1alpha1.ConditionDrifted, metav1.ConditionFalse, "Repaired")
	w.delete(t, "late")
}
