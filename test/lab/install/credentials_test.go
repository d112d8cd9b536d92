//go:build linux

package install

import (
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
)

// With each kind of credentials other than the default, which TestMainJob has, the scheduler
// schedules, is refused nothing, and no private key is where it was not asked for.
func TestEveryKindOfCredentialsSchedules(t *testing.T) {
	t.Parallel()
	for _, c := range credentials {
		t.Run(c.layout+"/"+c.kind, func(t *testing.T) {
			n, name := labs.Shared(t, c.layout), labs.SchedulerName(t)
			n.Deploy(t, name, n.Image(t), "--credentials", c.kind)
			n.PMKSched(t, "verify", "--name", name).OK(t)
			if c.kind != "node-inline" {
				hasNoKeyInConfigMaps(t, n, name)
			}
			n.CleanLog(t, name)
		})
	}
}

// hasNoKeyInConfigMaps fails the test if a private key of the scheduler can be read with the right
// to read ConfigMaps.
func hasNoKeyInConfigMaps(t *testing.T, n *labs.Node, name string) {
	t.Helper()
	maps := n.Kubectl(t, "get", "configmaps", "-n", "kube-system", "-l", "app.kubernetes.io/instance="+name, "-o", "yaml")
	if !strings.Contains(maps, "kind: ConfigMap") || strings.Contains(maps, "client-key-data") ||
		strings.Contains(maps, "PRIVATE KEY") {
		t.Errorf("the ConfigMaps hold a private key, or do not exist:\n%s", maps)
	}
}
