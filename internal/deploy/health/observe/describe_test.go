package observe

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
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
			host, _, _ := strings.Cut(tc.holder, "_")
			w := &workload{pods: tc.pods, leader: kubeapi.PodOfHost(tc.pods, host), lease: &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &tc.holder}}}
			h := &health.Workload{Scheduling: tc.metrics}
			for _, pod := range tc.pods {
				h.Replicas = append(h.Replicas, health.Replica{Pod: pod.Name})
			}
			w.describeLease(h)
			leads := ""
			for _, replica := range h.Replicas {
				if replica.Leads {
					leads += replica.Pod
				}
			}
			if leads != tc.leads || h.Lease.Foreign != tc.foreign {
				t.Errorf("leader %q, foreign %t; want %q, %t", leads, h.Lease.Foreign, tc.leads, tc.foreign)
			}
		})
	}
}

// The metrics are read at the scheduler's port, with the names of its release; a replica that
// refuses requests is one line.
func TestMetricsThroughTheAPIServer(t *testing.T) {
	w, o := newWorkload(t, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/api/v1/namespaces/n/pods/https:s-1:10260/proxy/metrics" {
			_, _ = w.Write(
				[]byte(
					"scheduler_schedule_attempts_total{result=\"scheduled\"} 7\n# TYPE scheduler_e2e_scheduling_duration_seconds " +
						"histogram\nscheduler_e2e_scheduling_duration_seconds_bucket{le=\"1\"} 7\n"))
			return
		}
		http.Error(w, "forbidden:\nno anonymous requests", http.StatusForbidden)
	}))
	w.live = &appsv1.Deployment{}
	w.live.Spec.Template.Spec.Containers = []corev1.Container{{Name: "kube-scheduler",
		Ports: []corev1.ContainerPort{{ContainerPort: 10260}}}}
	w.pods = []corev1.Pod{replicaPod("s-1", "node-1", false), replicaPod("s-2", "node-2", false),
		replicaPod("s-3", "node-3", false)}
	for i := range w.pods[:2] {
		w.pods[i].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	w.readScheduling(t.Context(), o)
	h := &health.Workload{Release: "v1.22.17"}
	w.describeMetrics(h, versions.Release{Major: 1, Minor: 24})
	s := h.Scheduling
	if s == nil || s.Scheduled != 7 || s.P50 == 0 || s.Replicas != 1 ||
		!strings.HasPrefix(s.Unknown, "the metrics of s-2 are not readable: ") || strings.Contains(s.Unknown, "\n") {
		t.Errorf("got %+v", s)
	}
}

func TestSchedulerDependsOnOneOfSeveralNodes(t *testing.T) {
	node := func(name, address string) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Address: address}}}}
	}
	one, other := node("node-1", "10.0.0.1"), node("node-2", "10.0.0.2")
	for name, tc := range map[string]struct {
		mode, server string
		nodes        []corev1.Node
		want         string
	}{
		"an address":         {deploy.CredentialsNode, "https://10.0.0.1:6443", []corev1.Node{one, other}, "node-1"},
		"a name":             {deploy.CredentialsNodeInline, "https://node-2:6443", []corev1.Node{one, other}, "node-2"},
		"a load balancer":    {deploy.CredentialsNode, "https://10.9.9.9:6443", []corev1.Node{one, other}, ""},
		"the only node":      {deploy.CredentialsNode, "https://10.0.0.1:6443", []corev1.Node{one}, ""},
		"one with two roles": {deploy.CredentialsNode, "https://10.0.0.1:6443", []corev1.Node{one, one}, ""},
		"a ServiceAccount": {deploy.CredentialsServiceAccount, "https://10.0.0.1:6443", []corev1.Node{one, other},
			""},
	} {
		w := &workload{credentials: &deploy.CredentialsReport{Mode: tc.mode, Server: tc.server}}
		h := &health.Workload{}
		if w.describeCredentials(h, tc.nodes); h.DependsOn != tc.want {
			t.Errorf("%s: depends on %q, want %q", name, h.DependsOn, tc.want)
		}
	}
}

// An error that two requests returned is one line, with the operation of the request.
func TestFailedRequestsAreUnknownParts(t *testing.T) {
	refused := apierrors.NewInternalError(errors.New("no etcd"))
	w := &workload{NamespacedName: types.NamespacedName{Namespace: "n", Name: "s"}, kind: health.Scheduler,
		undeployed: true, requests: []request{{"read Node/a", refused}, {"list pods", nil}, {"read Node/a", refused}}}
	got := (&cluster{workloads: []*workload{w}}).describe(versions.Release{}).Schedulers[0].Unknown
	want := []string{"scheduler s in namespace n has no deployed revision to compare with",
		"read Node/a: Internal error occurred: no etcd"}
	if !slices.Equal(got, want) {
		t.Errorf("unknown %q, want %q", got, want)
	}
}
