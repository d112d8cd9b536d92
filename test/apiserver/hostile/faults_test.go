//go:build linux && faults

package hostile

import "testing"

// Every command, alone and of many clusters, for each scheduler whose revisions an attacker wrote,
// and for each attack of the API server.
func TestFaultHostileCluster(t *testing.T) {
	f := newFixture(t)
	var every []string
	for i := range f.schedulers {
		every = append(every, f.schedulers[i].name)
	}
	t.Run("revisions", func(t *testing.T) { f.tryAll(t, false, every...) })
	t.Run("programs", func(t *testing.T) { f.tryAll(t, true, every...) })
	f.attacked(t, func(t *testing.T) { f.tryAll(t, false, "controls") })
}
