package profiles

import (
	"cmp"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

const (
	// clientQPS and clientBurst are high enough not to limit throughput: the scheduler's own
	// defaults (50 and 100) limit it to about 55 pods per second.
	clientQPS   = 5000
	clientBurst = 5000
)

// deployment sets the fields of a converted document that the deployed scheduler needs.
type deployment struct {
	*schema.Report
	request Request
	doc     *schema.Document
	to      schema.API
}

// identity ensures that one profile is named after the deployed scheduler.
func (d *deployment) identity() {
	profiles, wanted := d.doc.Profiles(), d.request.SchedulerName
	if len(profiles) == 1 {
		d.rename(profiles[0], wanted)
		return
	}
	seen := map[string]bool{}
	for _, p := range profiles {
		n := node.Get(p, "schedulerName")
		name := node.Text(n)
		switch {
		case name == "":
			d.Refuse(p, "set schedulerName in each profile", "a profile has no schedulerName, and there are %d profiles",
				len(profiles))
		case seen[name]:
			d.Refuse(n, "use a different name for each profile", "two profiles are named %q", name)
		case name == schema.DefaultSchedulerName && wanted != schema.DefaultSchedulerName:
			d.Refuse(n, "rename or remove that profile",
				"a second scheduler with a profile named %s would compete with the default scheduler for pods",
				schema.DefaultSchedulerName)
		}
		seen[name] = true
	}
	if !seen[wanted] {
		d.Refuse(node.Get(d.doc.Root, "profiles"), "name one profile "+wanted+", or set --name to the name of one of them",
			"none of the %d profiles has the name of the deployed scheduler, %q", len(profiles), wanted)
	}
}

func (d *deployment) rename(profile *yaml.Node, wanted string) {
	n := node.Get(profile, "schedulerName")
	switch {
	case node.IsNull(n):
		node.Remove(profile, "schedulerName")
		profile.Content = append([]*yaml.Node{node.String("schedulerName"), node.String(wanted)}, profile.Content...)
	case node.Text(n) != wanted:
		d.Note(n, "schedulerName %s becomes %s, the name of the deployed scheduler; use it in spec.schedulerName of pods",
			node.Text(n), wanted)
		d.Set(profile, "schedulerName", node.String(wanted), "")
	}
}

// connection sets the kubeconfig as mounted in the pod, and raises the client's limits unless the
// source sets them.
func (d *deployment) connection() {
	client := node.Child(d.doc.Root, "clientConnection")
	d.Set(client, "kubeconfig", node.String(d.request.Kubeconfig), "the path of the mounted file")
	qps, burst := node.Text(client, "qps"), node.Text(client, "burst")
	if !node.IsZero(qps) || !node.IsZero(burst) {
		return
	}
	node.Put(client, "qps", node.Int(clientQPS))
	node.Put(client, "burst", node.Int(clientBurst))
	d.Note(nil,
		"clientConnection.qps and burst set to %d: the defaults, 50 and 100, limit the scheduler to about 55 pods per second",
		clientQPS)
}

// election gives the scheduler its own lease: by default it would compete with the cluster's
// scheduler for the lease kube-scheduler. It reports whether leader election is enabled.
func (d *deployment) election() bool {
	lease := node.Child(d.doc.Root, "leaderElection")
	switch n := node.Get(lease, "leaderElect"); {
	case d.request.LeaderElect:
		d.Set(lease, "leaderElect", node.Bool(true), "several replicas may run, and one of them schedules")
	case node.IsNull(n):
		node.Put(lease, "leaderElect", node.Bool(false))
	}
	d.Set(lease, "resourceName", node.String(cmp.Or(d.request.LeaseName, d.request.SchedulerName)),
		"the lease has the scheduler's name")
	d.Set(lease, "resourceNamespace", node.String(d.request.LeaseNamespace), "the namespace of the lease")
	d.Set(lease, "resourceLock", node.String(schema.LeaseLock),
		"every release supports leases, and newer ones only leases")
	return node.IsTrue(lease, "leaderElect")
}
