//go:build linux && cases

package plugins

import (
	"testing"
)

// Two hostile tenants, who may create pods and the objects of plugins in one namespace each, and
// the agent of one node send generated objects to a scheduler with all plugins. The scheduler
// continues, the limits of all teams hold, no device is given twice, and the pods and gangs of
// other tenants are bound without being rejected or evicted.
//
// Of what any scheduler shares between tenants the test keeps within bounds that an administrator
// sets: each hostile tenant has at most maxHostilePods pods, as with a ResourceQuota of their
// number, few of which are large (etcd limits their sum), a bounded rate of requests, no priority
// above that of the other tenants, no affinity to pods of other namespaces, and no pods that are
// created with a node and overflow its sums ([restrain]).
func TestHostileTenantsHarmNoOne(t *testing.T) {
	for _, release := range siegeReleases() {
		t.Run(release, func(t *testing.T) { withstandsHostileTenants(t, newSubject(t, release)) })
	}
}
