package convert

import (
	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// ownElection converts the lock of a user's own document: since 1.27 client-go supports only
// leases, and since 1.24 only locks that include a lease
// (tools/leaderelection/resourcelock/interface.go).
func (c *conversion) ownElection() {
	lease := node.Get(c.doc.Root, "leaderElection")
	key, lock := node.Lookup(lease, "resourceLock")
	elects := node.IsNull(lease, "leaderElect") || node.IsTrue(lease, "leaderElect")
	switch was := node.Text(lock); {
	case lease == nil && !c.Rules.LeaderElectFlagsWithConfig && c.from.Set != schema.InV1beta1:
		c.Note(nil, "%s ignores the --leader-elect flags if --config is set; move their values to leaderElection", c.Release)
	case was == "" || was == schema.LeaseLock || !elects:
	case c.minor >= 27:
		c.Set(lease, "resourceLock", node.String(schema.LeaseLock), "")
		c.Note(key, "resourceLock %s becomes leases, the only one in %s; stop replicas that use the old lock first, since they ignore the lease", was, c.Release)
	case c.minor >= 24 && (was == "endpoints" || was == "configmaps"):
		c.Set(lease, "resourceLock", node.String(was+"leases"), "")
		c.Note(key, "resourceLock %s becomes %sleases, which includes both: %s does not support it", was, was, c.Release)
	}
}
