package convert

import (
	"slices"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// ownElection converts the lock of a user's own document to one that the release supports.
func (c *conversion) ownElection() {
	lease := node.Get(c.doc.Root, "leaderElection")
	key, lock := node.Lookup(lease, "resourceLock")
	elects := node.IsNull(lease, "leaderElect") || node.IsTrue(lease, "leaderElect")
	switch was, locks := node.Text(lock), c.Rules.ResourceLocks; {
	case lease == nil && !c.Rules.LeaderElectFlagsWithConfig && c.from.Set != schema.InV1beta1:
		c.Note(nil, "%s ignores the --leader-elect flags if --config is set; move their values to leaderElection", c.Release)
	case was == "" || slices.Contains(locks, was) || !elects:
	case len(locks) == 1:
		c.Set(lease, "resourceLock", node.String(schema.LeaseLock), "")
		c.Note(key,
			"resourceLock %s becomes leases, the only one in %s; stop replicas that use the old lock first, since they ignore "+
				"the lease", was, c.Release)
	case slices.Contains(locks, was+"leases"):
		c.Set(lease, "resourceLock", node.String(was+"leases"), "")
		c.Note(key, "resourceLock %s becomes %sleases, which includes both: %s does not support it", was, was, c.Release)
	}
}
