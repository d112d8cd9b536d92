//go:build linux && (cases || faults)

package install

import (
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
			showsCredentials(t, n, name, c.kind)
			n.CleanLog(t, name)
		})
	}
}

// subject is a kind of credentials on a layout.
type subject struct{ layout, kind string }
