//go:build linux && labs

package matrix

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/versions"
)

const zoneLabel = "topology.kubernetes.io/zone"

// A scheduler that is deployed on a cluster, whose controllers create the pods and bind their
// volumes, places as many pods of each of ten shapes on each node as in the simulation before. No
// two nodes have the same score, and the shapes are created one after the other; the pods of a
// shape are equal.
func TestReleaseSchedulesAsSimulated(t *testing.T) {
	for _, name := range []string{"v1.20.15", "v1.24.3", "v1.29.2", versions.Releases()[0].String()} {
		t.Run(name, func(t *testing.T) {
			release, err := versions.Parse(name)
			if err != nil {
				t.Fatal(err)
			}
			const workers = 9
			n := labs.Start(t, labs.Options{Release: name, Layout: "kubeadm", Workers: workers})
			var nodes []string
			for i := range workers {
				node := fmt.Sprintf("worker-%03d", 1+i)
				nodes = append(nodes, node)
				n.Kubectl(t, "label", "node", node, zoneLabel+"="+string(rune('a'+i%3)), fmt.Sprintf("shelf=%d", i%2))
				n.Apply(t, localVolumes(node, 10*(1+i)))
			}
			n.Apply(t,
				"apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: local}\nprovisioner: "+
					"kubernetes.io/no-provisioner\nvolumeBindingMode: WaitForFirstConsumer\n")
			api := "v1"
			if release.Minor < 22 {
				api = "v1beta1"
			} else if release.Minor < 25 {
				api = "v1beta3"
			}
			config := run.WriteFile(t, "scheduler.yaml", "apiVersion: kubescheduler.config.k8s.io/"+api+
				"\nkind: KubeSchedulerConfiguration\n"+controlplane.WithoutTies(release, nodes, "", ""))
			scheduler := labs.SchedulerName(t)
			n.Deploy(t, scheduler, n.Image(t), "--config", config)
			snapshot := filepath.Join(t.TempDir(), "cluster.tar.gz")
			run.PMKSched(t, "snapshot", "--kubeconfig", n.Lab.Kubeconfig(), "--to-file", snapshot).OK(t)
			shapes := shapes(scheduler)
			simulated := run.Decode[report.Report](t,
				run.PMKSched(t, "simulate", "add", "-m", run.WriteFile(t, "shapes.yaml", strings.Join(shapes, "---\n")),
					"--snapshot", snapshot, "--branch", name, "--name", scheduler, "--config", config, "--limit", "0", "-o",
					"json").OK(t).Stdout)
			want, pods := map[string]int{}, 0
			for _, p := range simulated.Placements {
				workload, _, _ := strings.Cut(p.Name, "-")
				want[workload+" on "+p.Node]++
				pods++
			}
			if pods != 200 || len(simulated.Unplaced) != 0 {
				t.Fatalf("%d pods have a node in the simulation, want 200; unplaced %v", pods, simulated.Unplaced)
			}
			bound := 0
			for _, shape := range shapes {
				n.Apply(t, shape)
				bound += 20
				awaitBound(t, n, bound)
			}
			if diff := cmp.Diff(want, perNode(t.Context(), t, n)); diff != "" {
				t.Errorf("pods of each shape on each node (-simulated +real):\n%s", diff)
			}
		})
	}
}

// awaitBound waits until as many pods of the shapes have a node.
func awaitBound(t *testing.T, n *labs.Node, pods int) {
	t.Helper()
	run.Eventually(t, fmt.Sprintf("%d pods are bound", pods), func(ctx context.Context) (bool, string) {
		bound := 0
		for _, count := range perNode(ctx, t, n) {
			bound += count
		}
		return bound == pods, fmt.Sprint(bound)
	})
}

// perNode counts the pods of each shape on each node.
func perNode(ctx context.Context, t *testing.T, n *labs.Node) map[string]int {
	t.Helper()
	list, err := n.Kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "shape"})
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, pod := range list.Items {
		if pod.Spec.NodeName != "" {
			counts[pod.Labels["shape"]+" on "+pod.Spec.NodeName]++
		}
	}
	return counts
}

// localVolumes returns three volumes of a node.
func localVolumes(node string, size int) (manifests string) {
	for i := range 3 {
		manifests += fmt.Sprintf(`---
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s-%[2]d}
spec:
  capacity: {storage: %[2]dGi}
  accessModes: [ReadWriteOnce]
  storageClassName: local
  local: {path: /data}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%[1]s]}]}]}}
`, node, size+i)
	}
	return manifests
}

// shapes returns ten workloads of 20 pods each for the workers of a lab.
func shapes(scheduler string) []string {
	workload := func(kind, name, requests, more, spec string) string {
		return fmt.Sprintf(`apiVersion: apps/v1
kind: %[1]s
metadata: {name: %[2]s, namespace: default}
spec:
  replicas: 20
  selector: {matchLabels: {shape: %[2]s}}
%[5]s  template:
    metadata: {labels: {shape: %[2]s}}
    spec:
      schedulerName: %[3]s
      nodeSelector: {type: kwok}
      automountServiceAccountToken: false
      containers: [{name: main, image: "localhost/none:v1", resources: {requests: {%[4]s}}}]
      %[6]s
`, kind, name, scheduler, requests, more, spec)
	}
	deployment := func(name, requests, spec string) string { return workload("Deployment", name, requests, "", spec) }
	const of = "labelSelector: {matchLabels: {shape: %s}}, topologyKey: %s"
	host := "kubernetes.io/hostname"
	return []string{
		deployment("small", "cpu: 50m, memory: 64Mi", ""),
		deployment("large", "cpu: 1, memory: 2Gi", ""),
		deployment("none", "", ""),
		deployment("memory", "cpu: 100m, memory: 4Gi", ""),
		deployment("zones", "cpu: 100m", "topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: DoNotSchedule, "+
			fmt.Sprintf(of, "zones", zoneLabel)+"}]"),
		deployment("hosts", "cpu: 100m",
			"topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, "+fmt.Sprintf(of, "hosts", host)+"}]"),
		deployment("shelf", "cpu: 200m",
			"affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "+
				"[{matchExpressions: [{key: shelf, operator: In, values: [\"1\"]}]}]}}}"),
		deployment("near", "cpu: 150m",
			"affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 80, podAffinityTerm: {"+
				fmt.Sprintf(of, "large", zoneLabel)+"}}]}}"),
		deployment("apart", "cpu: 100m",
			"affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 70, podAffinityTerm: {"+
				fmt.Sprintf(of, "apart", host)+"}}]}}"),
		workload("StatefulSet", "disk", "cpu: 100m", `  serviceName: disk
  podManagementPolicy: Parallel
  volumeClaimTemplates:
  - {metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], storageClassName: local, resources: {requests: {storage: 10Gi}}}}
`, ""),
	}
}
