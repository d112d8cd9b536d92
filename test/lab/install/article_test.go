//go:build linux

package install

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// Platform9's article prints a configuration for another release, with wrong indents. Both the
// corrected and the printed form deploy, and each change is reported.
func TestArticleConfigurationDeploysAndSchedules(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"my-scheduler.yaml", "as-printed.yaml"} {
		t.Run(file, func(t *testing.T) {
			n, name := labs.Shared(t, "pmk"), labs.SchedulerName(t)
			config := filepath.Join(run.Root(), "test/testdata/article", file)
			n.Deploy(t, name, n.Image(t), "--config", config).
				Prints(t, "v1beta3", "NodeResourcesLeastAllocated", "NodeResourcesFit", "healthzBindAddress", "metricsBindAddress")
			n.PMKSched(t, "verify", "--name", name).OK(t)
			deployed := n.Kubectl(t, "get", "configmaps", "-n", "kube-system", "-l", "app.kubernetes.io/instance="+name, "-o",
				"yaml")
			for _, text := range []string{"kubescheduler.config.k8s.io/v1beta3", "LeastAllocated", "weight: 3"} {
				if !strings.Contains(deployed, text) {
					t.Errorf("the deployed configuration lacks %q:\n%s", text, deployed)
				}
			}
		})
	}
}
