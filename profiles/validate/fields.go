package validate

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// checkValues applies the scheduler's own validation
// (pkg/scheduler/apis/config/validation/validation.go).
func (j *validator) checkValues() (wrong bool) {
	root := j.doc.Root
	j.extenders()
	if j.doc.Policy {
		return len(j.problems) > 0
	}
	j.election(node.Get(root, "leaderElection"))
	j.addresses()
	initial, most := node.Get(root, "podInitialBackoffSeconds"), node.Get(root, "podMaxBackoffSeconds")
	if cmp.Or(node.Number(initial), 1) > cmp.Or(node.Number(most), 10) {
		j.add(cmp.Or(most, initial), "", "podMaxBackoffSeconds (default 10) is less than podInitialBackoffSeconds (default 1)")
	}
	if burst := node.Get(root, "clientConnection", "burst"); node.Number(burst) < 0 {
		j.add(burst, "", "clientConnection.burst is negative")
	}
	seen := map[string]bool{}
	profiles := node.Items(root, "profiles")
	for _, p := range profiles {
		name := node.Text(p, "schedulerName")
		switch {
		case name == "" && len(profiles) > 1:
			j.add(p, "set schedulerName in each profile", "a profile has no schedulerName, and there are %d profiles", len(profiles))
		case seen[name]:
			j.add(node.Get(p, "schedulerName"), "use a different name for each profile", "two profiles are named %q", name)
		}
		seen[name] = true
		j.rejectedNames(p)
		j.pluginArgs(p)
		if queueSort(p, j.api) != queueSort(profiles[0], j.api) {
			j.add(cmp.Or(node.Get(p, "plugins", "queueSort"), p), "use the same queueSort plugin in every profile", "queueSort differs from that of the first profile")
		}
	}
	return len(j.problems) > 0
}

// queueSort returns the queueSort plugins of a profile.
func queueSort(p *yaml.Node, a schema.API) string {
	set := node.Get(p, "plugins", "queueSort")
	names := schema.MergedPlugins(node.Get(p, "plugins"), "queueSort", a)
	if set == nil {
		return "PrioritySort"
	}
	return strings.Join(names, " ")
}

// rejected returns the plugins that the validation rejects by name if they are enabled or
// configured (invalidPluginsByVersion).
func (j *validator) rejected() []string {
	switch minor := j.api.Minor; {
	case j.api.Set == schema.InV1 && minor >= 31:
		return []string{"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"}
	default:
		return j.Rules.RejectedPlugins[j.api.GroupVersion()]
	}
}

func (j *validator) rejectedNames(p *yaml.Node) {
	var named []*yaml.Node
	for _, set := range schema.PluginSets(node.Get(p, "plugins")) {
		if set.Point != schema.MultiPoint {
			named = append(named, node.Items(set.Node, "enabled")...)
		}
	}
	for _, e := range append(named, node.Items(p, "pluginConfig")...) {
		if name := node.Text(e, "name"); slices.Contains(j.rejected(), name) {
			j.add(node.Get(e, "name"), "convert the file: `pmk-sched profile convert --to "+j.Release.String()+"`", "plugin %s is not allowed in %s by %s", name, j.api.Name, j.Release)
		}
	}
}

// election checks leader election, which is enabled by default.
func (j *validator) election(lease *yaml.Node) {
	if elect := node.Get(lease, "leaderElect"); !node.IsNull(elect) && !node.IsTrue(elect) {
		return
	}
	lock := node.Get(lease, "resourceLock")
	if j.api.Minor >= 27 && !slices.Contains([]string{"", schema.LeaseLock}, node.Text(lock)) {
		j.add(lock, "use leases", "invalid resourceLock %q: %s only supports leases", node.Text(lock), j.Release)
	}
	long := func(name string, otherwise time.Duration) time.Duration {
		if d, err := time.ParseDuration(node.Text(lease, name)); err == nil && d != 0 {
			return d
		}
		return otherwise
	}
	duration, renew, retry := long("leaseDuration", 15*time.Second), long("renewDeadline", 10*time.Second), long("retryPeriod", 2*time.Second)
	switch {
	case duration < 0 || renew < 0 || retry < 0:
		j.add(lease, "", "the durations of leaderElection must be greater than 0")
	case duration <= renew:
		j.add(lease, "", "leaderElection: leaseDuration %s is not longer than renewDeadline %s", duration, renew)
	case float64(renew) <= 1.2*float64(retry):
		j.add(lease, "", "leaderElection: renewDeadline %s is not longer than 1.2 times retryPeriod %s", renew, retry)
	}
}

// addresses checks the plain HTTP listener: it cannot be disabled up to 1.22, nor enabled in later
// releases.
func (j *validator) addresses() {
	for _, name := range []string{"healthzBindAddress", "metricsBindAddress"} {
		_, value := node.Lookup(j.doc.Root, name)
		if node.IsNull(value) {
			continue
		}
		address := node.Text(value)
		_, port := schema.SplitAddress(address)
		zeroPort := strings.HasSuffix(address, ":0") && port == 0
		switch {
		case j.Rules.InsecurePort && zeroPort, j.Rules.InsecurePort && j.api.Set == schema.InV1beta2 && port == 0:
			j.add(value, "use a loopback address such as 127.0.0.1:10251", "invalid %s %q: %s cannot disable this listener", name, address, j.Release)
		case !j.Rules.InsecurePort && address != "" && !zeroPort:
			j.add(value, "remove it", "invalid %s %q: %s has no such listener; must be empty or have port 0", name, address, j.Release)
		}
	}
}

// extenders checks the extenders for the release.
func (j *validator) extenders() {
	for _, f := range Extenders(j.Release, j.doc.Root, nil) {
		if !f.starts() {
			j.add(f.Node, f.Try, "%s", f.Message)
		}
	}
}
