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

// Machines may have the same host name, and on PMK nodes are named by address and processes by host
// name: the logs show which process leads.
func TestTheLeaderOnTheHostNetworkIsFoundByLogs(t *testing.T) {
	const (
		waiting = "2026-01-01T00:00:01.5Z I0101 leaderelection.go:248] attempting to acquire leader lease " +
			"kube-system/kube-scheduler...\n"
		old = waiting + "2026-01-01T00:10:01.5Z I0101 leaderelection.go:258] successfully acquired lease " +
			"kube-system/kube-scheduler\n"
		waitingNow = `2026-01-01T00:00:01.5Z I0101 leaderelection.go:258] "Attempting to acquire leader lease..."` + "\n"
		recent     = waitingNow + `2026-01-01T00:20:01.5Z I0101 leaderelection.go:272] "Successfully acquired lease" ` +
			`lock="kube-system/kube-scheduler"` + "\n"
		rotated = "2026-01-01T00:00:01.5Z I0101 schedule_one.go:286] Successfully bound pod to node\n"
	)
	for name, tc := range map[string]struct {
		logs  map[string]string // of the pods on the nodes a, b and c; without one the log cannot be read
		want  string
		fails string
	}{
		"1.20":                        {map[string]string{"a": waiting, "b": old, "c": waiting}, "b", ""},
		"1.37":                        {map[string]string{"a": waitingNow, "b": waitingNow, "c": recent}, "c", ""},
		"the node of the host name":   {map[string]string{"a": old, "b": waiting, "c": waiting}, "a", ""},
		"a process without a pod":     {map[string]string{"a": waiting, "b": waiting, "c": waiting}, "", ""},
		"one is about to end":         {map[string]string{"a": old, "b": recent, "c": waiting}, "b", ""},
		"a log was rotated":           {map[string]string{"a": waiting, "b": rotated, "c": waiting}, "b", ""},
		"two logs were rotated":       {map[string]string{"a": rotated, "b": rotated, "c": waiting}, "", ""},
		"a node is lost":              {map[string]string{"b": old, "c": waiting}, "b", ""},
		"the leader's node is lost":   {map[string]string{"b": waiting, "c": waiting}, "a", ""},
		"two nodes are lost":          {map[string]string{"c": waiting}, "", "read the log of Pod/kube-system/kube-scheduler-a"},
		"another one is in a restart": {map[string]string{"a": waiting, "b": waiting, "ended": old, "c": recent}, "c", ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text, found := tc.logs[strings.TrimPrefix(strings.Split(r.URL.Path, "/")[6], "kube-scheduler-")]
				if !found || r.URL.Query().Get("container") != "kube-scheduler" || r.URL.Query().Get("timestamps") != "true" {
					w.WriteHeader(http.StatusBadGateway)
				}
				_, _ = fmt.Fprint(w, text) // the client sees a short log
			}))
			defer server.Close()
			kube, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			holder, at := "a_f3a1", metav1.NewMicroTime(time.Date(2026, 1, 1, 0, 20, 1, 0, time.UTC))
			lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, AcquireTime: &at}}
			pod, err := PodOfLeader(t.Context(), kube, lease, schedulers(tc.logs["ended"] != ""), "kube-scheduler")
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("error %v, want %q", err, tc.fails)
				}
				return
			}
			got := ""
			if pod != nil {
				got = pod.Spec.NodeName
			}
			if err != nil || got != tc.want {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

// schedulers returns the default schedulers of three nodes and, if wanted, one more whose container
// has ended.
func schedulers(ended bool) (pods []corev1.Pod) {
	for _, node := range []string{"a", "b", "c", "ended"} {
		pod := corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kube-scheduler-" + node},
			Spec:       corev1.PodSpec{NodeName: node, HostNetwork: true},
			Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "kube-scheduler"}}},
		}
		if node == "ended" {
			if !ended {
				continue
			}
			pod.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
		}
		pods = append(pods, pod)
	}
	return pods
}
