//go:build linux

package commands

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/test/internal/archives"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// A real scheduler serves its metrics to authenticated users only. An archive that is made on its
// node contains the metrics, and errors.txt lists the replica on another node.
func TestArchiveHasTheMetricsOfTheSchedulerOfThisNode(t *testing.T) {
	empty(t)
	ctx := run.Context(t)
	plane := controlplane.On(t, server)
	_, text, err := net.SplitHostPort(controlplane.FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	plane.NewScheduler(t, controlplane.Scheduler{Name: "metered", Args: []string{
		"--secure-port=" + text, "--bind-address=127.0.0.1", "--authentication-kubeconfig=" +
			plane.Kubeconfig, "--authorization-kubeconfig=" + plane.Kubeconfig,
	}}).Start()
	plane.Namespace(ctx, t, "default")
	plane.Nodes(ctx, t, "default", "node-1")
	plane.Place(ctx, t, "default", controlplane.Pod("metered", "default", "bound"))
	const scheduled = `scheduler_schedule_attempts_total{profile="metered",result="scheduled"} 1`
	run.Eventually(t, "the scheduler counts the pod, which it does after the binding", func(ctx context.Context) (bool, string) {
		metrics, err := controlplane.Get(ctx, "https://127.0.0.1:"+text+"/metrics", server.Config().BearerToken)
		return strings.Contains(metrics, scheduled), fmt.Sprint(err)
	})

	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	plane.Namespace(ctx, t, metav1.NamespaceSystem)
	no := false
	for pod, node := range map[string]string{"metered-here": host, "metered-there": "another-node"} {
		_, err := plane.Kube.CoreV1().Pods(metav1.NamespaceSystem).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: pod,
				Labels: map[string]string{ownership.LabelName: ownership.Scheduler, ownership.LabelInstance: "metered"}},
			Spec: corev1.PodSpec{NodeName: node, HostNetwork: true, AutomountServiceAccountToken: &no,
				Containers: []corev1.Container{{
					Name: ownership.Scheduler, Image: "localhost/metered:v1",
					Ports: []corev1.ContainerPort{{ContainerPort: int32(port)}},
				}}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "bug.tar.gz")
	run.PMKSched(t, "--kubeconfig", plane.Kubeconfig, "--node-root", "none", "sysdump", "--archive", file).OK(t)
	files := archives.Read(t, file)
	if metrics := files["bug/metrics/kube-system/metered-here.txt"]; !strings.Contains(metrics, scheduled) {
		t.Errorf("the archive lacks the metrics of the scheduler on this node, but has\n%.2000s\n%s", metrics,
			files["bug/errors.txt"])
	}
	if files["bug/metrics/kube-system/metered-there.txt"] != "" ||
		!strings.Contains(files["bug/errors.txt"], "read the metrics of Pod/kube-system/metered-there") {
		t.Errorf("metrics of another node: errors.txt has\n%s", files["bug/errors.txt"])
	}
}
