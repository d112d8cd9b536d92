//go:build linux && labs

package install

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// mostWait is how long a pod may wait when the leader is lost: the lease, which expires after 15 s,
// and as much again on a busy machine.
const mostWait = 30 * time.Second

// A scheduler on a hosted control plane survives the loss of the worker with its leader and of an
// API server, and follows the API server's minor, which changes twice under it.
func TestHostedControlPlaneAtEveryRelease(t *testing.T) {
	for _, s := range []struct {
		release  string
		upgrades []string
	}{
		{"v1.21.3", []string{"v1.22.2", "v1.23.6"}},
		{"v1.24.3", []string{"v1.25.4", "v1.26.3"}},
		{"v1.29.2", []string{"v1.30.14", "v1.31.0"}},
		{"v1.34.2", []string{"v1.35.4", "v1.36.3"}},
		{"v1.37.1", nil},
	} {
		t.Run(s.release, func(t *testing.T) {
			n := labs.Start(t, labs.Options{Release: s.release, Layout: lab.LayoutHosted, Masters: 2, Kubelets: 3, Workers: 3})
			const name = "my-scheduler"
			n.Laptop(t, append([]string{"deploy", "--name", name, "--image", n.Image(t)}, labs.Stable("1s")...)...).OK(t)
			spread(t, n, name)
			n.Laptop(t, "verify", "--name", name).OK(t)
			n.CleanLog(t, name)

			pod, _, _ := strings.Cut(holder(t, n, name), "_")
			worker := n.Kubectl(t, "get", "pod", "-n", "kube-system", pod, "-o", "jsonpath={.spec.nodeName}")
			survivesLoss(t, n, name, worker)
			host, _, _ := strings.Cut(holder(t, n, "kube-scheduler"), "_")
			survivesLoss(t, n, name, host)
			for _, to := range s.upgrades {
				followsUpgrade(t, n, name, to)
			}
			n.Laptop(t, "uninstall", "--name", name, "--yes").OK(t)
			n.LeftNothing(t, name)
		})
	}
}

// holder returns the holder of a lease in kube-system.
func holder(t *testing.T, n *labs.Node, lease string) string {
	t.Helper()
	return n.Kubectl(t, "get", "lease", "-n", "kube-system", lease, "-o", "jsonpath={.spec.holderIdentity}")
}

// survivesLoss stops a worker or a host of the control plane while pods are created, and starts it
// again.
func survivesLoss(t *testing.T, n *labs.Node, name, host string) {
	t.Helper()
	began := time.Now()
	longest := longestWait(t, n, name, func() {
		if err := n.Lab.StopNode(t.Context(), host); err != nil {
			t.Fatal(err)
		}
		if err := clock.Sleep(t.Context(), 20*time.Second); err != nil { // longer than the lease is valid
			t.Fatal(err)
		}
	})
	t.Logf("loss of %s: a pod waited %s at most", host, longest)
	if longest > mostWait {
		t.Errorf("loss of %s: a pod waited %s", host, longest)
	}
	if err := n.Lab.StartNode(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	n.On(t, host).AwaitRestarted(t, name, began)
	awaitReplicas(t, n, name)
}

func awaitReplicas(t *testing.T, n *labs.Node, name string) {
	t.Helper()
	run.Eventually(t, "two replicas are ready", func(ctx context.Context) (bool, string) {
		d, err := n.Kube.AppsV1().Deployments("kube-system").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return d.Status.ReadyReplicas == 2, strconv.Itoa(int(d.Status.ReadyReplicas)) + " are ready"
	})
}

// followsUpgrade changes the release of the API server under the scheduler: status and upgrade
// --check report it, and upgrade deploys the scheduler of the new release.
func followsUpgrade(t *testing.T, n *labs.Node, name, to string) {
	t.Helper()
	from := n.Release
	longest := longestWait(t, n, name, func() {
		run.PMKLab(t, "upgrade", "--name", n.Name, "--branch", to).OK(t)
	})
	t.Logf("upgrade from %s to %s: a pod waited %s at most", from, to, longest)
	n.Laptop(t, "status").Fails(t, 3, to)
	n.Laptop(t, "upgrade", "check").Fails(t, 3, "pmk-sched upgrade --name "+name)
	n.Laptop(t, "verify", "--name", name).OK(t) // one minor older than the API server
	n.Release = to
	n.Laptop(t, append([]string{"upgrade", "--name", name, "--image", n.Image(t)}, labs.Stable("1s")...)...).OK(t)
	n.Laptop(t, "status").OK(t).Prints(t, to)
	n.Laptop(t, "verify", "--name", name).OK(t)
	spread(t, n, name)
}

// longestWait returns the longest wait of a pod while do runs.
func longestWait(t *testing.T, n *labs.Node, scheduler string, do func()) time.Duration {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	longest := n.LongestWait(ctx, t, scheduler)
	do()
	stop()
	return <-longest
}
