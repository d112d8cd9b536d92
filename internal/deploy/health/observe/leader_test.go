package observe

import (
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
	"github.com/pmk-sched/pmk-sched/versions"
)

func replicaPod(name, node string, hostNetwork bool) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "n"},
		Spec: corev1.PodSpec{NodeName: node, HostNetwork: hostNetwork}}
}

func TestLeaderIsTheHolderOfTheLease(t *testing.T) {
	podNetwork := []corev1.Pod{replicaPod("s-1", "node-1", false), replicaPod("s-2", "node-2", false)}
	hostNetwork := []corev1.Pod{replicaPod("s-1", "10.0.0.1", true), replicaPod("s-2", "10.0.0.2", true)}
	for name, tc := range map[string]struct {
		pods    []corev1.Pod
		holder  string
		metrics *health.Scheduling
		leads   string
		foreign bool
	}{
		"a pod":                        {podNetwork, "s-2_x", nil, "s-2", false},
		"another process":              {podNetwork, "other_x", nil, "", true},
		"no pods":                      {nil, "s-2_x", nil, "", false},
		"a node's name is not enough":  {hostNetwork, "10.0.0.1_x", nil, "", false},
		"a host name that no node has": {hostNetwork, "master_x", nil, "", false},
		"the same, and a replica leads": {hostNetwork, "master_x", &health.Scheduling{Replicas: 2, Leading: 1}, "",
			false},
		"the same, and no replica leads": {hostNetwork, "master_x", &health.Scheduling{Replicas: 2}, "", true},
		"the same, and one could not be asked": {hostNetwork, "master_x", &health.Scheduling{Replicas: 1, Unknown: "timeout"},
			"", false},
		"a single one":                    {hostNetwork[:1], "master_x", nil, "s-1", false},
		"a single one that does not lead": {hostNetwork[:1], "master_x", &health.Scheduling{Replicas: 1}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reading{Workload: &health.Workload{Lease: &health.Lease{Exists: true, Holder: tc.holder},
				Scheduling: tc.metrics}, pods: tc.pods}
			host, _, _ := strings.Cut(tc.holder, "_")
			r.leads = kubeapi.PodOfHost(tc.pods, host)
			for _, pod := range tc.pods {
				r.Replicas = append(r.Replicas, health.Replica{Pod: pod.Name})
			}
			r.leader()
			leads := ""
			for _, replica := range r.Replicas {
				if replica.Leads {
					leads += replica.Pod
				}
			}
			if leads != tc.leads || r.Lease.Foreign != tc.foreign {
				t.Errorf("leader %q, foreign %t; want %q, %t", leads, r.Lease.Foreign, tc.leads, tc.foreign)
			}
		})
	}
}

// The metrics are read at the scheduler's port, with the names of its release; a replica that
// refuses requests is one line.
func TestMetricsThroughTheAPIServer(t *testing.T) {
	r := newReading(t, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/api/v1/namespaces/n/pods/https:s-1:10260/proxy/metrics" {
			_, _ = w.Write(
				[]byte(
					"scheduler_schedule_attempts_total{result=\"scheduled\"} 7\n# TYPE scheduler_e2e_scheduling_duration_seconds " +
						"histogram\nscheduler_e2e_scheduling_duration_seconds_bucket{le=\"1\"} 7\n"))
			return
		}
		http.Error(w, "forbidden:\nno anonymous requests", http.StatusForbidden)
	}))
	r.observer.Release, r.Release = versions.Release{Major: 1, Minor: 24}, "v1.22.17"
	r.live = &appsv1.Deployment{}
	r.live.Spec.Template.Spec.Containers = []corev1.Container{{Name: "kube-scheduler",
		Ports: []corev1.ContainerPort{{ContainerPort: 10260}}}}
	r.pods = []corev1.Pod{replicaPod("s-1", "node-1", false), replicaPod("s-2", "node-2", false),
		replicaPod("s-3", "node-3", false)}
	r.Replicas = []health.Replica{{Pod: "s-1", Ready: true}, {Pod: "s-2", Ready: true}, {Pod: "s-3"}}
	r.metrics(t.Context())
	s := r.Scheduling
	if s == nil || s.Scheduled != 7 || s.P50 == 0 || s.Replicas != 1 ||
		!strings.HasPrefix(s.Unknown, "the metrics of s-2 are not readable: ") || strings.Contains(s.Unknown, "\n") {
		t.Errorf("got %+v", s)
	}
}
