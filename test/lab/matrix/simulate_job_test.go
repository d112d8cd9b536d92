//go:build linux && labs

package matrix

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/matrix"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/tune"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Two schedulers on two snapshots, as a Job on the cluster, place each pod where they place it on
// this machine. An interrupted run leaves nothing, and a search has the same result. The newest
// release has a limit of failures for each index.
func TestReleaseRunsSimulationsAsAJob(t *testing.T) {
	for _, name := range []string{"v1.24.3", versions.Releases()[0].String()} {
		t.Run(name, func(t *testing.T) {
			n := labs.Start(t, labs.Options{Release: name, Layout: "kubeadm"})
			n.AwaitReady(t)
			args := []string{"simulate", "matrix", "--branch", "v1.24.3", "-o", "json", "-f", "default", "-f",
				run.WriteFile(t, "packer.yaml", jobScheduler)}
			for i, cpus := range []int{4, 8} {
				file := filepath.Join(t.TempDir(), fmt.Sprintf("snapshot-%d.tar.gz", i))
				run.PMKSched(t, "snapshot", "--from", run.WriteFile(t, "objects.yaml", jobObjects(cpus)), "--to-file", file).OK(t)
				args = append(args, "--snapshot", file)
			}
			local := run.Decode[matrix.Result](t, run.PMKSched(t, append(args, "pending")...).OK(t).Stdout)
			onCluster := append(args, "--job", "--kubeconfig", n.Lab.Kubeconfig(), "--parallel", "2", "--node", n.NodeName,
				"--busybox", "/bin/busybox", "--load", "containerd="+n.Path(image.DefaultContainerdSocket), "pending")
			remote := run.Decode[matrix.Result](t, run.PMKSched(t, onCluster...).OK(t).Stdout)
			noTimes := cmpopts.IgnoreFields(report.Summary{}, "LoadSeconds", "ScheduleSeconds")
			if diff := cmp.Diff(local, remote, noTimes, cmpopts.IgnoreUnexported(report.Report{})); diff != "" {
				t.Errorf("(-this machine +cluster):\n%s", diff)
			}
			if len(local.Cells) != 4 {
				t.Fatalf("%d simulations", len(local.Cells))
			}
			for i, want := range []string{"empty", "half", "empty", "half"} {
				if s := local.Cells[i].Result.Summary; s.Placed != 1001 || s.Unplaced != 0 {
					t.Errorf("%s: %d pods placed, %d not", local.Cells[i], s.Placed, s.Unplaced)
				}
				for _, p := range local.Cells[i].Result.Placements {
					if p.Name == "new" && p.Node != want {
						t.Errorf("%s: the pod is on %s, want %s", local.Cells[i], p.Node, want)
					}
				}
			}
			jobsLeft(t, n)
			interruptedJob(t, n, onCluster)
			tunesOnTheCluster(t, n)
		})
	}
}

// tunesOnTheCluster compares a search on the cluster with one on this machine: each figure of each
// trial is the same.
func tunesOnTheCluster(t *testing.T, n *labs.Node) {
	t.Helper()
	args := []string{"tune", "--branch", "v1.24.3", "--objective", "empty-nodes,spread,moves,cost", "--price", "big=1.5",
		"--trials", "10", "-o", "json"}
	for i := range 3 { // the third one is held out
		var b strings.Builder
		for node := range 6 {
			fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Node\nmetadata: {name: n%[1]d, labels: {kubernetes.io/hostname: n%[1]d, "+
				"node.kubernetes.io/instance-type: big}}\nspec: {}\nstatus: {capacity: {cpu: 8, memory: 32Gi, pods: 110}, "+
				"allocatable: {cpu: 8, memory: 32Gi, pods: 110}}\n", node)
		}
		for pod := range 14 + 3*i {
			fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p%d, namespace: shop}\nspec: {nodeName: n%d, "+
				"containers: [{name: main, image: i, resources: {requests: {cpu: %d00m, memory: %dMi}}}]}\n", pod, pod%6, 1+pod%7,
				100*(1+pod%11))
		}
		args = append(args, "--snapshot", run.WriteFile(t, fmt.Sprintf("objects-%d.yaml", i), b.String()))
	}
	local := run.PMKSched(t, append(args[:len(args):len(args)], "--parallel", "4")...).OK(t).Stdout
	remote := run.PMKSched(t, append(args, "--job", "--kubeconfig", n.Lab.Kubeconfig(), "--parallel", "3",
		"--node", n.NodeName, "--busybox", "/bin/busybox",
		"--load", "containerd="+n.Path(image.DefaultContainerdSocket))...).OK(t).Stdout
	if diff := cmp.Diff(local, remote); diff != "" {
		t.Errorf("(-this machine +cluster):\n%s", diff)
	}
	result := run.Decode[tune.Result](t, remote)
	if len(result.Trials) != 10 || len(result.HeldOut) != 1 {
		t.Errorf("%d trials, held out %q", len(result.Trials), result.HeldOut)
	}
	for _, trial := range result.Trials {
		if trial.Error != "" || len(trial.BySnapshot) != 2 {
			t.Errorf("%s: %s, %v", trial.Name, trial.Error, trial.BySnapshot)
		}
	}
	jobsLeft(t, n)
}

const jobScheduler = `apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
metadata: {name: packer}
spec: {configuration: {preset: binpack}}
`

// jobObjects returns two nodes of which one is half full, a pod that fits on both, and 1000 pods
// for a third node, so that the result has many lines.
func jobObjects(cpus int) string {
	var b strings.Builder
	for name, size := range map[string]int{"half": cpus, "empty": cpus, "bulk": 64} {
		fmt.Fprintf(&b, `---
apiVersion: v1
kind: Node
metadata: {name: %[1]s, labels: {kubernetes.io/hostname: %[1]s, bulk: "%[3]t"}}
spec: {}
status: {capacity: {cpu: "%[2]d", memory: 64Gi, pods: "2000"}, allocatable: {cpu: "%[2]d", memory: 64Gi, pods: "2000"}}
`, name, size, name == "bulk")
	}
	pod := func(name, cpu, spec string) {
		fmt.Fprintf(&b,
			"---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: shop}\nspec: {%s, containers: [{name: main, "+
				"image: i, resources: {requests: {cpu: %s}}}]}\n", name, spec, cpu)
	}
	pod("running", fmt.Sprint(cpus/2), "nodeName: half")
	pod("new", "1", `nodeSelector: {bulk: "false"}`)
	for i := range 1000 {
		pod(fmt.Sprintf("bulk-%x", sha256.Sum224(fmt.Append(nil, i))), "10m", `nodeSelector: {bulk: "true"}`)
	}
	return b.String()
}

// jobsLeft fails the test if a Job or a pod is left.
func jobsLeft(t *testing.T, n *labs.Node) {
	t.Helper()
	const selector = "app.kubernetes.io/managed-by=pmk-sched,app.kubernetes.io/component=simulation"
	if left := n.Kubectl(t, "get", "jobs,pods", "-n", "kube-system", "-l", selector, "-o", "name"); left != "" {
		t.Errorf("left: %s", left)
	}
}

// interruptedJob interrupts the command while a pod runs.
func interruptedJob(t *testing.T, n *labs.Node, args []string) {
	t.Helper()
	cmd := exec.CommandContext(run.Context(t), run.Program(t), args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	run.Eventually(t, "a simulation runs", func(ctx context.Context) (bool, string) {
		list, err := n.Kube.CoreV1().Pods("kube-system").List(ctx,
			metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=simulation", FieldSelector: "status.phase=Running"})
		if err != nil {
			return false, err.Error()
		}
		return len(list.Items) > 0, "no running pod"
	})
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 ||
		!strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("the interrupted command: %v\n%s", err, stderr.String())
	}
	jobsLeft(t, n)
}
