//go:build linux && cases

package install

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// A scheduler with two profiles schedules under both names, and verify finds the Deployment of
// either.
func TestEachProfileOfASchedulerIsVerified(t *testing.T) {
	n, name := labs.Shared(t, "kubeadm"), labs.SchedulerName(t)
	second := name + "-b"
	config := run.WriteFile(t, "config.yaml",
		"apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: "+
			name+"\n- schedulerName: "+second+"\n")
	n.Deploy(t, name, n.Image(t), "--config", config)
	n.PMKSched(t, "verify", "--name", name).OK(t)
	n.PMKSched(t, "verify", "--name", second).OK(t).Prints(t, "bound by", second+" is a profile of scheduler "+name)
}
