//go:build linux && faults

package install

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// Another process renews the lease: the replica, on the host network, waits for it. Only its
// metrics show that it does not lead.
func TestFaultStatusReportsATakenLease(t *testing.T) {
	n, name := labs.Shared(t, "pmk"), labs.SchedulerName(t)
	n.Deploy(t, name, n.Image(t))
	expectFindings(t, n, name)
	run.Eventually(t, "the lease is a finding", func(ctx context.Context) (bool, string) {
		text := fmt.Sprintf(`{"spec":{"holderIdentity":"other_1","renewTime":%q}}`,
			time.Now().UTC().Format(metav1.RFC3339Micro))
		if _, err := n.Kube.CoordinationV1().Leases("kube-system").Patch(ctx, name, types.MergePatchType, []byte(text),
			metav1.PatchOptions{}); err != nil {
			return false, err.Error()
		}
		r := n.PMKSched(t, "status", "--name", name)
		return r.Code == 3 && strings.Contains(r.Stderr, "[lease-foreign]"), r.String()
	})
	expectFindings(t, n, name) // the replica takes the lease when it expires
}

// The kubelet stops: after its grace period the node is not ready, and no kubelet restarts the
// replica.
func TestFaultStatusReportsANodeThatIsNotReady(t *testing.T) {
	n, name := labs.Exclusive(t, "kubeadm"), labs.SchedulerName(t)
	n.Deploy(t, name, n.Image(t))
	expectFindings(t, n, name)
	kubelet := func(signal string) { n.Shell(t, "pkill -"+signal+" -x --ns $$ --nslist net kubelet") }
	kubelet("STOP")
	t.Cleanup(func() { kubelet("CONT") })
	run.Eventually(t, "the node is a finding", func(context.Context) (bool, string) {
		r := n.PMKSched(t, "status", "--name", name)
		return r.Code == 3 && strings.Contains(r.Stderr, "[node-not-ready]") && strings.Contains(r.Stderr, n.NodeName),
			r.String()
	})
	kubelet("CONT")
	n.AwaitReady(t)
	expectFindings(t, n, name)
}
