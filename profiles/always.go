package profiles

import (
	"cmp"
	"net/netip"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// clientQPS and clientBurst are high enough not to be the limit: with the
	// scheduler's own defaults (50 and 100) it binds about 55 pods a second,
	// whatever the machine.
	clientQPS   = 5000
	clientBurst = 5000

	// leases is the one lock that every release accepts; from 1.27 it is the only one.
	leases = "leases"

	defaultScheduler = "default-scheduler"
)

// addresses settles where health and metrics are served. Up to 1.22 that is a
// plain HTTP listener that a configuration cannot switch off, so it is put on
// loopback; after, the secure port serves both.
func (c *conversion) addresses() {
	fields := []string{"healthzBindAddress", "metricsBindAddress"}
	var host string
	for _, name := range fields {
		key, value := lookup(c.doc.root, name)
		if key == nil {
			continue
		}
		h, port := splitAddress(text(value))
		if port != 0 {
			c.ports.Source = port
		}
		if loopback(h) {
			host = h
		}
		c.address(name, key, value)
	}
	if c.rules.InsecurePort {
		c.ports.Insecure = c.request.InsecurePort
		if c.ports.Insecure == 0 {
			c.ports.Insecure = DefaultInsecurePort
		}
		for _, name := range fields {
			put(c.doc.root, name, str("127.0.0.1:"+strconv.Itoa(c.ports.Insecure)))
		}
	} else if host != "" {
		c.args = append(c.args, "--bind-address="+host)
		c.note(nil, "health and metrics were served on %s only; --bind-address=%s keeps that on the host's network", host, host)
	}
}

// address tells what becomes of one of the two fields, and removes it where the
// target has none.
func (c *conversion) address(name string, key, value *yaml.Node) {
	if c.rules.InsecurePort {
		c.note(key, "%s %q becomes an address on loopback: it is plain HTTP for everyone, and cannot be switched off; /healthz and /metrics are served over HTTPS on the secure port too", name, text(value))
		return
	}
	remove(c.doc.root, name)
	path := map[string]string{"healthzBindAddress": "/healthz", "metricsBindAddress": "/metrics"}[name]
	c.note(key, "%s %q left out: %s has no plain HTTP listener; %s is served over HTTPS on the secure port (--secure-port)", name, text(value), c.request.Release, path)
}

// splitAddress takes host and port apart; either may be missing.
func splitAddress(s string) (host string, port int) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s, 0
	}
	if _, err := netip.ParseAddr(s); err == nil {
		return s, 0
	}
	p, err := strconv.ParseUint(s[i+1:], 10, 16)
	if err != nil {
		return s[:i], 0
	}
	return strings.Trim(s[:i], "[]"), int(p)
}

func loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}

// identity sees to it that one profile carries the name that is deployed.
func (c *conversion) identity() {
	profiles, wanted := c.profiles(), c.request.SchedulerName
	if len(profiles) == 1 {
		c.rename(profiles[0], wanted)
		return
	}
	seen := map[string]bool{}
	for _, p := range profiles {
		n := get(p, "schedulerName")
		name := text(n)
		switch {
		case name == "":
			c.refuse(p, "give each profile a schedulerName", "a profile has no schedulerName, and there are %d profiles", len(profiles))
		case seen[name]:
			c.refuse(n, "give each profile a name of its own", "two profiles are named %q", name)
		case name == defaultScheduler && wanted != defaultScheduler:
			c.refuse(n, "rename or remove that profile", "a second scheduler with a profile named %s would fight the cluster's own for the same pods", defaultScheduler)
		}
		seen[name] = true
	}
	if !seen[wanted] {
		c.refuse(get(c.doc.root, "profiles"), "name one profile "+wanted+", or deploy with --name and the name of one of them",
			"none of the %d profiles is named %q, the scheduler that is deployed", len(profiles), wanted)
	}
}

func (c *conversion) rename(profile *yaml.Node, wanted string) {
	n := get(profile, "schedulerName")
	switch {
	case isNull(n):
		remove(profile, "schedulerName")
		profile.Content = append([]*yaml.Node{str("schedulerName"), str(wanted)}, profile.Content...)
	case text(n) != wanted:
		c.note(n, "schedulerName %s becomes %s, the name that is deployed; pods ask for it in spec.schedulerName", text(n), wanted)
		c.set(profile, "schedulerName", str(wanted), "")
	}
}

// connection points the client at the kubeconfig in the pod, and lifts the
// limits that would hold the scheduler back unless the source chose its own.
func (c *conversion) connection() {
	client := child(c.doc.root, "clientConnection")
	c.set(client, "kubeconfig", str(c.request.Kubeconfig), "it is where the file is mounted")
	qps, burst := text(get(client, "qps")), text(get(client, "burst"))
	if !zero(qps) || !zero(burst) {
		return
	}
	put(client, "qps", integer(clientQPS))
	put(client, "burst", integer(clientBurst))
	c.note(nil, "clientConnection.qps and burst set to %d: the defaults, 50 and 100, hold the scheduler to about 55 pods a second", clientQPS)
}

// zero says whether a number is missing or 0, for which the scheduler puts its
// default.
func zero(s string) bool {
	v, err := strconv.ParseFloat(s, 64)
	return s == "" || err == nil && v == 0
}

// election gives the scheduler a lease of its own: by default it would fight the
// cluster's scheduler for the lease kube-scheduler.
func (c *conversion) election() {
	lease := child(c.doc.root, "leaderElection")
	switch n := get(lease, "leaderElect"); {
	case c.request.LeaderElect:
		c.set(lease, "leaderElect", boolean(true), "more than one replica may run, and one of them schedules")
	case isNull(n):
		put(lease, "leaderElect", boolean(false))
	}
	c.leaderElect = isTrue(get(lease, "leaderElect"))
	c.set(lease, "resourceName", str(cmp.Or(c.request.LeaseName, c.request.SchedulerName)), "the lease carries the scheduler's name")
	c.set(lease, "resourceNamespace", str(c.request.LeaseNamespace), "the lease is kept there")
	c.set(lease, "resourceLock", str(leases), "every release accepts leases, and newer ones nothing else")
}

// isTrue reads a boolean as YAML 1.1 does, like the scheduler.
func isTrue(n *yaml.Node) bool {
	switch strings.ToLower(text(n)) {
	case "true", "yes", "on", "y":
		return true
	}
	return false
}

// set writes a field that pmk-sched decides on, and tells where the source had
// something else.
func (c *conversion) set(m *yaml.Node, name string, value *yaml.Node, why string) {
	key, old := lookup(m, name)
	if key != nil && !isNull(old) && text(old) == value.Value {
		return
	}
	if key != nil && !isNull(old) && why != "" {
		c.note(key, "%s %s becomes %s: %s", name, text(old), value.Value, why)
	}
	put(m, name, value)
}
