//go:build linux && labs

package conformance

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// gate has the feature gates and API versions, off by default, which the specs of a release need.
type gate struct {
	gates, api string
}

// gatesOf returns the gates of a minor: scheduling gates at 1.26 (KEP-3521), asynchronous
// preemption at 1.32 (KEP-4832), gang scheduling since 1.35 (KEP-4671), and the status of device
// pools since 1.36 (KEP-5677).
func gatesOf(minor int) gate {
	switch {
	case minor >= 37:
		return gate{"GenericWorkload=true,DRAResourcePoolStatus=true,DRAPartitionableDevicesType=true",
			"scheduling.k8s.io/v1beta1=true,resource.k8s.io/v1alpha3=true"}
	case minor == 36:
		return gate{"GenericWorkload=true,GangScheduling=true,WorkloadAwarePreemption=true,DRAResourcePoolStatus=true",
			"scheduling.k8s.io/v1alpha2=true,resource.k8s.io/v1alpha3=true"}
	case minor == 35:
		return gate{"GenericWorkload=true,GangScheduling=true", "scheduling.k8s.io/v1alpha1=true"}
	case minor == 32:
		return gate{gates: "SchedulerAsyncPreemption=true"}
	case minor == 26:
		return gate{gates: "PodSchedulingReadiness=true"}
	}
	return gate{}
}

// flag is the flag that opens the gates.
func (g gate) flag() string { return "--feature-gates=" + g.gates }

// open opens the gates of every component, and waits until each of them runs with them.
func (g gate) open(t *testing.T, n *labs.Node) {
	t.Helper()
	if g.gates == "" {
		return
	}
	server := []string{g.flag()}
	if g.api != "" {
		server = append(server, "--runtime-config="+g.api)
	}
	n.AddFlags(t, "kube-apiserver", server...)
	n.AddFlags(t, "kube-controller-manager", g.flag())
	n.AddFlags(t, "kube-scheduler", g.flag())
	for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		run.Eventually(t, component+" runs with the gates", func(ctx context.Context) (bool, string) {
			pod, err := n.Kube.CoreV1().Pods(metav1.NamespaceSystem).Get(ctx, component+"-"+n.NodeName, metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			command := strings.Join(pod.Spec.Containers[0].Command, " ")
			ready := len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].Ready
			return ready && strings.Contains(command, g.gates), command
		})
	}
}
