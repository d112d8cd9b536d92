//go:build linux && (cases || faults)

package hostile

import "testing"

// The short form of TestFaultHostileCluster: the commands that compile nothing, for one scheduler
// whose revisions an attacker wrote, and the attacks of an API server on commands that read one and
// many clusters. Then, where pods run, nothing but what a record says can stop a command that
// deploys it.
func TestHostileClusterHarmsNoUser(t *testing.T) {
	f := newFixture(t)
	f.tryAll(t, false, "reads-key")
	f.attacked(t, func(t *testing.T) {
		f.try(t, command{}, []string{"detect"})
		f.try(t, command{}, []string{"fleet", "status", "--timeout", "2s"})
	})
	f.works(t)
	t.Run("records of a cluster that works", f.tryRecords)
}

func (f *fixture) tryRecords(t *testing.T) {
	for name, schedulers := range map[string][]string{
		"upgrade":  {"reads-key", "reads-plugin", "reads-base", "reads-file", "fetches", "executes", "pushes"},
		"rollback": {"reads-key", "escalates"}, "credentials refresh": {"reads-key"}, "fleet upgrade": {"reads-key", "pushes"},
	} {
		c := commands()[name]
		for _, args := range f.calls(t, name, schedulers...) {
			f.try(t, c, args)
			f.restore(t, args)
		}
	}
}
