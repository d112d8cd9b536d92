package extender

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

func TestActivatePatchesPendingPodsOnly(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u-1"}}
	alone, err := NewHandle(HandleOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := alone.Activate(t.Context(), pod); !errors.Is(err, errNoCluster) {
		t.Errorf("without a cluster: %v", err)
	}

	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.Method+" "+r.URL.Path)
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(server.Close)
	handle, err := NewHandle(HandleOptions{Config: &rest.Config{Host: server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	pods := handle.SharedInformerFactory().Core().V1().Pods().Informer().GetStore()
	other, bound := pod.DeepCopy(), pod.DeepCopy()
	other.UID, bound.Spec.NodeName = "u-2", "n"
	for name, known := range map[string]*corev1.Pod{"a pod of another UID": other, "a pod with a node": bound} {
		if err := pods.Add(known); err != nil {
			t.Fatal(err)
		}
		if err := handle.Activate(t.Context(), pod); err != nil || len(requests) > 0 {
			t.Errorf("the informer has %s: requests %q, %v", name, requests, err)
		}
	}
	if err := pods.Add(pod); err != nil {
		t.Fatal(err)
	}
	if err := handle.Activate(t.Context(), pod); err != nil || len(requests) != 1 ||
		requests[0] != "PATCH /api/v1/namespaces/shop/pods/web/status" {
		t.Errorf("requests %q, %v", requests, err)
	}
}
