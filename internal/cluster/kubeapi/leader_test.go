package kubeapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// On PMK nodes are named by address and processes by host name: the logs say which of them leads.
func TestPodOfLeaderIsFoundByLogsIfNoObjectHasItsHostName(t *testing.T) {
	const (
		waits  = "I1122 leaderelection.go:248] attempting to acquire leader lease kube-system/kube-scheduler...\n"
		old    = waits + "I1122 leaderelection.go:258] successfully acquired lease kube-system/kube-scheduler\n"
		recent = waits + `I1122 leaderelection.go:272] "Successfully acquired lease" lock="kube-system/kube-scheduler"` + "\n"
	)
	for name, tc := range map[string]struct {
		logs  map[string]string // of the pods a and b; without one the log cannot be read
		want  string
		fails string
	}{
		"1.20":               {map[string]string{"a": waits, "b": old}, "b", ""},
		"1.37":               {map[string]string{"a": recent, "b": waits}, "a", ""},
		"none says so":       {map[string]string{"a": waits, "b": waits}, "", ""},
		"two say so":         {map[string]string{"a": recent, "b": recent}, "", ""},
		"one node is lost":   {map[string]string{"b": old}, "b", ""},
		"the leader is lost": {map[string]string{"b": waits}, "", "read the log of Pod/kube-system/a"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text, found := tc.logs[strings.Split(r.URL.Path, "/")[6]]
				if !found || r.URL.Query().Get("container") != "kube-scheduler" || r.URL.Query().Get("sinceTime") == "" {
					w.WriteHeader(http.StatusBadGateway)
				}
				_, _ = fmt.Fprint(w, text) // the client sees a short log
			}))
			defer server.Close()
			kube, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			holder, at := "master_f3a1", metav1.NewMicroTime(time.Now())
			lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, AcquireTime: &at}}
			var pods []corev1.Pod
			for i, pod := range []string{"a", "b"} {
				pods = append(pods, corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: pod},
					Spec:       corev1.PodSpec{NodeName: fmt.Sprintf("10.0.0.%d", i+1), HostNetwork: true},
				})
			}
			pod, err := PodOfLeader(t.Context(), kube, lease, pods, "kube-scheduler")
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("error %v, want %q", err, tc.fails)
				}
				return
			}
			got := ""
			if pod != nil {
				got = pod.Name
			}
			if err != nil || got != tc.want {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}
