package validate

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// checkValues applies the scheduler's own validation
// (pkg/scheduler/apis/config/validation/validation.go).
func (v *validator) checkValues() (wrong bool) {
	root := v.doc.Root
	if !v.Converted {
		v.extenders()
	}
	if v.doc.Policy {
		return v.rejected()
	}
	v.election(node.Get(root, "leaderElection"))
	v.addresses()
	initial, most := node.Get(root, "podInitialBackoffSeconds"), node.Get(root, "podMaxBackoffSeconds")
	if cmp.Or(node.Number(initial), 1) > cmp.Or(node.Number(most), 10) {
		v.add(cmp.Or(most, initial), "",
			"podMaxBackoffSeconds (default 10) is less than podInitialBackoffSeconds (default 1)")
	}
	if burst := node.Get(root, "clientConnection", "burst"); node.Number(burst) < 0 {
		v.add(burst, "", "clientConnection.burst is negative")
	}
	seen := map[string]bool{}
	profiles := node.Items(root, "profiles")
	for _, p := range profiles {
		given := node.Get(p, "schedulerName")
		name := node.Text(given)
		switch {
		case name == "" && !node.IsNull(given):
			v.add(given, "set it, or remove the line", "schedulerName is empty")
		case name == "" && len(profiles) > 1:
			v.add(p, "set schedulerName in each profile", "a profile has no schedulerName, and there are %d profiles",
				len(profiles))
		case seen[name]:
			v.add(node.Get(p, "schedulerName"), "use a different name for each profile", "two profiles are named %q", name)
		}
		seen[name] = true
		v.rejectedNames(p)
		v.conflictingScorers(node.Get(p, "plugins"))
		v.pluginArgs(p)
		v.queueSort(profiles[0], p)
	}
	return v.rejected()
}

// rejectedNames checks for plugins that the validation rejects by name if they are enabled or
// configured (invalidPluginsByVersion).
func (v *validator) rejectedNames(p *yaml.Node) {
	var named []*yaml.Node
	for _, set := range schema.PluginSets(node.Get(p, "plugins")) {
		if set.Point != schema.MultiPoint {
			named = append(named, node.Items(set.Node, "enabled")...)
		}
	}
	for _, e := range append(named, node.Items(p, "pluginConfig")...) {
		if name := node.Text(e, "name"); slices.Contains(v.Rules.RejectedPlugins[v.api.GroupVersion()], name) {
			v.add(node.Get(e, "name"), v.remedy(name), "plugin %s is not allowed in %s by %s", name, v.api.Name, v.Release)
		}
	}
}

// conflictingScorers rejects NodeResourcesFit under score together with a plugin that it replaces,
// in the only release that has both (validateScorePluginSetForConflictPlugins, 1.22).
func (v *validator) conflictingScorers(plugins *yaml.Node) {
	scorers := schema.MergedPlugins(plugins, "score", v.api)
	if v.api.Set != schema.InV1beta1 || !v.Rules.FitScores || !slices.Contains(scorers, schema.ResourcesFit) {
		return
	}
	for _, s := range schema.Strategies() {
		if slices.Contains(scorers, s.Plugin) {
			v.add(schema.Entry(plugins, "score", "enabled", schema.ResourcesFit), "disable "+s.Plugin+" under score",
				"%s and %s cannot both score in %s", schema.ResourcesFit, s.Plugin, v.api.Name)
		}
	}
}

// election checks leader election, which is enabled by default.
func (v *validator) election(lease *yaml.Node) {
	if elect := node.Get(lease, "leaderElect"); !node.IsNull(elect) && !node.IsTrue(elect) {
		return
	}
	lock := node.Get(lease, "resourceLock")
	if name := node.Text(lock); len(v.Rules.ResourceLocks) == 1 && name != "" && name != schema.LeaseLock {
		v.add(lock, "use leases", "invalid resourceLock %q: %s only supports leases", name, v.Release)
	}
	long := func(name string, otherwise time.Duration) time.Duration {
		if d, err := time.ParseDuration(node.Text(lease, name)); err == nil && d != 0 {
			return d
		}
		return otherwise
	}
	duration, renew, retry := long("leaseDuration", 15*time.Second), long("renewDeadline",
		10*time.Second), long("retryPeriod", 2*time.Second)
	switch {
	case min(duration, renew, retry) < 0:
		v.add(lease, "", "the durations of leaderElection must be greater than 0")
	case duration <= renew:
		v.add(lease, "", "leaderElection: leaseDuration %s is not longer than renewDeadline %s", duration, renew)
	case float64(renew) <= 1.2*float64(retry):
		v.add(lease, "", "leaderElection: renewDeadline %s is not longer than 1.2 times retryPeriod %s", renew, retry)
	}
}

// addresses checks the plain HTTP listener: it cannot be disabled up to 1.22, nor enabled in later
// releases.
func (v *validator) addresses() {
	for _, name := range []string{"healthzBindAddress", "metricsBindAddress"} {
		_, value := node.Lookup(v.doc.Root, name)
		if node.IsNull(value) {
			continue
		}
		address := node.Text(value)
		_, port := schema.SplitAddress(address)
		zeroPort := strings.HasSuffix(address, ":0") && port == 0
		_, notIP := netip.ParseAddrPort(address)
		switch {
		case v.Rules.InsecurePort && zeroPort, v.Rules.InsecurePort && v.api.Set == schema.InV1beta2 && port == 0:
			v.add(value, "use a loopback address such as 127.0.0.1:10251", "invalid %s %q: %s cannot disable this listener",
				name, address, v.Release)
		case !v.Rules.InsecurePort && address != "" && (!zeroPort || notIP != nil):
			v.add(value, "remove it", "invalid %s %q: %s has no such listener; must be empty, or an IP address with port 0",
				name, address, v.Release)
		}
	}
}

// extenders checks the extenders for the release.
func (v *validator) extenders() {
	for _, f := range Extenders(v.Release, v.doc.Root, nil) {
		if f.starts() {
			v.warn(f.Node, f.Try, "%s", f.Message)
		} else {
			v.add(f.Node, f.Try, "%s", f.Message)
		}
	}
}
