package kubeapi

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestMetricsAreReadOnTheirNodeAndOtherwiseThroughTheAPIServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/namespaces/n/pods/https:open:10260/proxy/metrics" {
			_, _ = w.Write([]byte("through the API server"))
			return
		}
		http.Error(w, "no anonymous requests", http.StatusForbidden)
	}))
	defer server.Close()
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	reads := func(_ context.Context, port int) (string, error) {
		if port != 10260 {
			t.Errorf("port %d", port)
		}
		return "on the node", nil
	}
	fails := func(context.Context, int) (string, error) { return "", errors.New("connection refused") }
	pod := func(name, node, address string, hostNetwork bool) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "n"}, Spec: corev1.PodSpec{NodeName: node,
				HostNetwork: hostNetwork},
			Status: corev1.PodStatus{HostIP: address},
		}
	}
	for name, tc := range map[string]struct {
		pod   *corev1.Pod
		local func(context.Context, int) (string, error)
		want  string
		err   []string
	}{
		"this node":             {pod("open", "here", "", true), reads, "on the node", nil},
		"this node, by address": {pod("open", "node-1", "10.0.0.1", true), reads, "on the node", nil},
		"this node, unreadable": {pod("open", "here", "", true), fails, "through the API server", nil},
		"this node, and refused": {pod("closed", "here", "", true), fails, "",
			[]string{"no anonymous requests", "on this node: connection refused"}},
		"pod network":                       {pod("open", "here", "", false), reads, "through the API server", nil},
		"another node":                      {pod("open", "there", "10.0.0.2", true), reads, "through the API server", nil},
		"another node, and refused":         {pod("closed", "there", "", true), reads, "", []string{"no anonymous requests"}},
		"no way to read those of this node": {pod("open", "here", "", true), nil, "through the API server", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Metrics{Pods: kube.CoreV1(), Machine: []string{"here", "10.0.0.1"}, Local: tc.local}.Read(t.Context(),
				tc.pod, 10260)
			if (err != nil) != (len(tc.err) > 0) || err == nil && got != tc.want {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
			for _, text := range tc.err {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("the error lacks %q: %v", text, err)
				}
			}
		})
	}
}
