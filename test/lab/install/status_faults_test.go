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

// Another process renews the lease: the replica, on the host network, waits for it. Only its metrics show that it does not lead.
func TestFaultStatusReportsATakenLease(t *testing.T) {
	n, name := labs.Shared(t, "pmk"), labs.SchedulerName(t)
	n.Deploy(t, name, n.Image(t))
	expectFindings(t, n, name)
	run.Eventually(t, "the lease is a finding", func(ctx context.Context) (bool, string) {
		text := fmt.Sprintf(`{"spec":{"holderIdentity":"other_1","renewTime":%q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
		if _, err := n.Kube.CoordinationV1().Leases("kube-system").Patch(ctx, name, types.MergePatchType, []byte(text), metav1.PatchOptions{}); err != nil {
			return false, err.Error()
		}
		r := n.PMKSched(t, "status", "--name", name)
		return r.Code == 3 && strings.Contains(r.Stderr, "[lease-foreign]"), r.String()
	})
	expectFindings(t, n, name) // the replica takes the lease when it expires
}
