package profiles

import (
	"cmp"

	"go.yaml.in/yaml/v3"
)

const (
	// clientQPS and clientBurst are high enough not to be the limit: with the
	// scheduler's own defaults (50 and 100) it binds about 55 pods a second,
	// whatever the machine.
	clientQPS   = 5000
	clientBurst = 5000
)

// deployment sets the fields of a converted document that belong to the deployed scheduler.
type deployment struct {
	*report
	request Request
	doc     *document
	to      api
}

// identity sees to it that one profile carries the name that is deployed.
func (d *deployment) identity() {
	profiles, wanted := d.doc.profiles(), d.request.SchedulerName
	if len(profiles) == 1 {
		d.rename(profiles[0], wanted)
		return
	}
	seen := map[string]bool{}
	for _, p := range profiles {
		n := get(p, "schedulerName")
		name := text(n)
		switch {
		case name == "":
			d.refuse(p, "give each profile a schedulerName", "a profile has no schedulerName, and there are %d profiles", len(profiles))
		case seen[name]:
			d.refuse(n, "give each profile a name of its own", "two profiles are named %q", name)
		case name == defaultScheduler && wanted != defaultScheduler:
			d.refuse(n, "rename or remove that profile", "a second scheduler with a profile named %s would fight the cluster's own for the same pods", defaultScheduler)
		}
		seen[name] = true
	}
	if !seen[wanted] {
		d.refuse(get(d.doc.root, "profiles"), "name one profile "+wanted+", or deploy with --name and the name of one of them",
			"none of the %d profiles is named %q, the scheduler that is deployed", len(profiles), wanted)
	}
}

func (d *deployment) rename(profile *yaml.Node, wanted string) {
	n := get(profile, "schedulerName")
	switch {
	case isNull(n):
		remove(profile, "schedulerName")
		profile.Content = append([]*yaml.Node{str("schedulerName"), str(wanted)}, profile.Content...)
	case text(n) != wanted:
		d.note(n, "schedulerName %s becomes %s, the name that is deployed; pods ask for it in spec.schedulerName", text(n), wanted)
		d.report.set(profile, "schedulerName", str(wanted), "")
	}
}

// connection points the client at the kubeconfig in the pod, and lifts the
// limits that would hold the scheduler back unless the source chose its own.
func (d *deployment) connection() {
	client := child(d.doc.root, "clientConnection")
	d.report.set(client, "kubeconfig", str(d.request.Kubeconfig), "it is where the file is mounted")
	qps, burst := text(get(client, "qps")), text(get(client, "burst"))
	if !zero(qps) || !zero(burst) {
		return
	}
	put(client, "qps", integer(clientQPS))
	put(client, "burst", integer(clientBurst))
	d.note(nil, "clientConnection.qps and burst set to %d: the defaults, 50 and 100, hold the scheduler to about 55 pods a second", clientQPS)
}

// election gives the scheduler a lease of its own: by default it would fight the
// cluster's scheduler for the lease kube-scheduler.
func (d *deployment) election() bool {
	lease := child(d.doc.root, "leaderElection")
	switch n := get(lease, "leaderElect"); {
	case d.request.LeaderElect:
		d.report.set(lease, "leaderElect", boolean(true), "more than one replica may run, and one of them schedules")
	case isNull(n):
		put(lease, "leaderElect", boolean(false))
	}
	d.report.set(lease, "resourceName", str(cmp.Or(d.request.LeaseName, d.request.SchedulerName)), "the lease carries the scheduler's name")
	d.report.set(lease, "resourceNamespace", str(d.request.LeaseNamespace), "the lease is kept there")
	d.report.set(lease, "resourceLock", str(leases), "every release accepts leases, and newer ones nothing else")
	return isTrue(get(lease, "leaderElect"))
}
