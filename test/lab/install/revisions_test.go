//go:build linux && labs

package install

import (
	"strconv"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// The last ten revisions are kept, and the oldest of them can be returned to.
func TestTenRevisionsOfARealSchedulerAreKept(t *testing.T) {
	n, name := labs.Shared(t, "pmk"), labs.SchedulerName(t)
	image, deploy := n.Image(t), deployer(t, n, name)
	for i := range 12 {
		config := run.WriteFile(t, "config"+strconv.Itoa(i)+".yaml",
			"apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\nparallelism: "+strconv.Itoa(i+1)+
				"\n")
		deploy(image, "--config", config).OK(t)
	}
	kept := history(t, n, name)
	if len(kept) != 10 || kept[0].Revision != 3 || !kept[9].Current {
		t.Fatalf("history: %+v", kept)
	}
	n.PMKSched(t, append([]string{"rollback", "--name", name, "--to", "3"}, labs.Stable("1s")...)...).OK(t)
	n.PMKSched(t, "verify", "--name", name).OK(t)
}
