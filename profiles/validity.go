package profiles

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// validates is the scheduler's own validation
// (pkg/scheduler/apis/config/validation/validation.go).
func (j *judgement) validates() (wrong bool) {
	root := j.doc.root
	j.extenders()
	if j.doc.policy {
		return len(j.problems) > 0
	}
	j.election(get(root, "leaderElection"))
	j.addresses()
	initial, most := get(root, "podInitialBackoffSeconds"), get(root, "podMaxBackoffSeconds")
	if cmp.Or(number(initial), 1) > cmp.Or(number(most), 10) {
		j.add(cmp.Or(most, initial), "", "podMaxBackoffSeconds (10 unless given) is less than podInitialBackoffSeconds (1 unless given)")
	}
	if burst := get(root, "clientConnection", "burst"); number(burst) < 0 {
		j.add(burst, "", "clientConnection.burst is negative")
	}
	seen := map[string]bool{}
	profiles := items(get(root, "profiles"))
	for _, p := range profiles {
		name := text(get(p, "schedulerName"))
		switch {
		case name == "" && len(profiles) > 1:
			j.add(p, "give each profile a schedulerName", "a profile has no schedulerName, and there are %d profiles", len(profiles))
		case seen[name]:
			j.add(get(p, "schedulerName"), "give each profile a name of its own", "two profiles are named %q", name)
		}
		seen[name] = true
		j.rejectedNames(p)
		j.pluginArgs(p)
		if queueSort(p, j.api) != queueSort(profiles[0], j.api) {
			j.add(cmp.Or(get(p, "plugins", "queueSort"), p), "there is one queue: sort it the same way in every profile", "queueSort differs from that of the first profile")
		}
	}
	return len(j.problems) > 0
}

// queueSort returns the names of what sorts the queue for a profile.
func queueSort(p *yaml.Node, a api) string {
	set := get(p, "plugins", "queueSort")
	names := merged(get(p, "plugins"), "queueSort", a)
	if set == nil {
		return "PrioritySort"
	}
	return strings.Join(names, " ")
}

// rejected returns the plugins that the validation refuses by name where they are
// enabled or configured (invalidPluginsByVersion).
func (j *judgement) rejected() []string {
	switch minor := j.api.minor; {
	case j.api.set == inV1 && minor >= 31:
		return []string{"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"}
	default:
		return j.rules.RejectedPlugins[j.api.version()]
	}
}

func (j *judgement) rejectedNames(p *yaml.Node) {
	var named []*yaml.Node
	for _, set := range pluginSets(get(p, "plugins")) {
		if set.point != multiPoint {
			named = append(named, items(get(set.node, "enabled"))...)
		}
	}
	for _, e := range append(named, items(get(p, "pluginConfig"))...) {
		if name := text(get(e, "name")); slices.Contains(j.rejected(), name) {
			j.add(get(e, "name"), "convert the file: `pmk-sched profile convert --to "+j.release.String()+"`", "plugin %s is refused in %s by %s", name, j.api.name, j.release)
		}
	}
}

// election holds for a scheduler that elects a leader, as it does unless told
// not to.
func (j *judgement) election(lease *yaml.Node) {
	if elect := get(lease, "leaderElect"); !isNull(elect) && !isTrue(elect) {
		return
	}
	lock := get(lease, "resourceLock")
	if j.api.minor >= 27 && !slices.Contains([]string{"", leases}, text(lock)) {
		j.add(lock, "use leases", "resourceLock %q: %s has leases only", text(lock), j.release)
	}
	long := func(name string, otherwise time.Duration) time.Duration {
		if d, err := time.ParseDuration(text(get(lease, name))); err == nil && d != 0 {
			return d
		}
		return otherwise
	}
	duration, renew, retry := long("leaseDuration", 15*time.Second), long("renewDeadline", 10*time.Second), long("retryPeriod", 2*time.Second)
	switch {
	case duration < 0 || renew < 0 || retry < 0:
		j.add(lease, "", "the durations of leaderElection have to be greater than zero")
	case duration <= renew:
		j.add(lease, "", "leaderElection: leaseDuration %s is not longer than renewDeadline %s", duration, renew)
	case float64(renew) <= 1.2*float64(retry):
		j.add(lease, "", "leaderElection: renewDeadline %s is not longer than 1.2 times retryPeriod %s", renew, retry)
	}
}

// addresses holds the plain HTTP listener: it cannot be switched off up to 1.22,
// and not on after.
func (j *judgement) addresses() {
	for _, name := range []string{"healthzBindAddress", "metricsBindAddress"} {
		_, value := lookup(j.doc.root, name)
		if isNull(value) {
			continue
		}
		address := text(value)
		_, port := splitAddress(address)
		zeroPort := strings.HasSuffix(address, ":0") && port == 0
		switch {
		case j.rules.InsecurePort && zeroPort, j.rules.InsecurePort && j.api.set == inV1beta2 && port == 0:
			j.add(value, "give an address on loopback, such as 127.0.0.1:10251", "%s %q: %s cannot switch this listener off", name, address, j.release)
		case !j.rules.InsecurePort && address != "" && !zeroPort:
			j.add(value, "leave it out", "%s %q: %s has no such listener, so it has to be empty or with port 0", name, address, j.release)
		}
	}
}

// extenders is what the release asks of them.
func (j *judgement) extenders() {
	for _, f := range checkExtenders(j.release, j.doc.root, nil) {
		if !f.starts() {
			j.add(f.node, f.try, "%s", f.message)
		}
	}
}
