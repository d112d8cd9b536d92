package versions

import (
	"slices"
	"strings"
)

// Flag is a command-line flag of a Kubernetes component.
type Flag struct {
	// Name is the name without dashes, as [FlagName] returns it. It is empty for words that are not
	// flags.
	Name string
	// Value is the text after "=", or the next word. HasValue is set if there is one.
	Value    string
	HasValue bool
	// Words are the words that the flag was read from.
	Words []string
}

// FlagName returns a flag's name as every Kubernetes component compares it: with hyphens instead of
// underscores (WordSepNormalizeFunc in k8s.io/component-base/cli/flag/flags.go).
func FlagName(name string) string { return strings.ReplaceAll(name, "_", "-") }

// ParseFlags returns the flags of a command line in their order. Without "=" the next word is the
// value, unless it begins with a dash or the flag is a boolean flag of kube-scheduler.
func ParseFlags(words []string) []Flag {
	var flags []Flag
	for i := 0; i < len(words); i++ {
		if !strings.HasPrefix(words[i], "-") {
			flags = append(flags, Flag{Words: words[i : i+1]})
			continue
		}
		name, value, has := strings.Cut(strings.TrimLeft(words[i], "-"), "=")
		f := Flag{Name: FlagName(name), Value: value, HasValue: has, Words: words[i : i+1]}
		if !has && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") && !IsBooleanFlag(f.Name) {
			f.Value, f.HasValue, f.Words = words[i+1], true, words[i:i+2]
			i++
		}
		flags = append(flags, f)
	}
	return flags
}

// FindFlag returns the last flag with a name, which wins. found is false if the flag is not given.
func FindFlag(words []string, name string) (flag Flag, found bool) {
	for _, f := range ParseFlags(words) {
		if f.Name == name {
			flag, found = f, true
		}
	}
	return flag, found
}

// IsBooleanFlag reports whether a flag of kube-scheduler needs no value, in all releases that have
// it.
func IsBooleanFlag(name string) bool {
	return slices.Contains([]string{
		"add-dir-header", "alsologtostderr", "authentication-skip-lookup", "authentication-tolerate-lookup-failure",
		"contention-profiling", "disable-http2-serving", "experimental-logging-sanitization", "help", "leader-elect",
		"log-json-split-stream", "log-text-split-stream", "logtostderr", "one-output", "permit-address-sharing",
		"permit-port-sharing", "profiling", "skip-headers", "skip-log-headers", "use-legacy-policy-config", "version",
	}, name)
}

// FlagReleases describes the minor releases whose kube-scheduler has a flag: "from 1.24 on", "up to
// 1.23". It is empty if no release in the table has it.
func FlagReleases(name string) string {
	for _, row := range flags() {
		if !slices.Contains(row.list, name) {
			continue
		}
		from, last := Release{Major: 1, Minor: row.from}, Release{Major: 1, Minor: row.before - 1}
		switch {
		case row.from > oldestMinor && row.before <= newestMinor:
			return "from " + from.MinorString() + " up to " + last.MinorString()
		case row.from > oldestMinor:
			return "from " + from.MinorString() + " on"
		case row.before <= newestMinor:
			return "up to " + last.MinorString()
		}
		return "in every release"
	}
	return ""
}

// IgnoredFlag is a flag that kube-scheduler accepts and ignores when it reads a configuration file.
type IgnoredFlag struct {
	Name string
	// Field replaces the flag: a path in KubeSchedulerConfiguration, or a field of its profiles.
	Field string
	// InProfile is set if Field is inside of the profiles.
	InProfile bool
}

// IgnoredFlags returns the flags of the release that have no effect with --config (ApplyTo in
// cmd/kube-scheduler/app/options/options.go, and deprecated.go), without the ones that pmk-sched
// sets itself.
func (r Rules) IgnoredFlags() []IgnoredFlag {
	ignored := []IgnoredFlag{
		{Name: "kube-api-content-type", Field: "clientConnection.contentType"},
		{Name: "kube-api-qps", Field: "clientConnection.qps"},
		{Name: "kube-api-burst", Field: "clientConnection.burst"},
		{Name: "profiling", Field: "enableProfiling"},
		{Name: "contention-profiling", Field: "enableContentionProfiling"},
		{Name: "scheduler-name", Field: "schedulerName", InProfile: true},
		{Name: "hard-pod-affinity-symmetric-weight", Field: "hardPodAffinityWeight in the arguments of InterPodAffinity",
			InProfile: true},
	}
	if !r.LeaderElectFlagsWithConfig {
		ignored = append(ignored, []IgnoredFlag{
			{Name: "leader-elect-lease-duration", Field: "leaderElection.leaseDuration"},
			{Name: "leader-elect-renew-deadline", Field: "leaderElection.renewDeadline"},
			{Name: "leader-elect-retry-period", Field: "leaderElection.retryPeriod"},
		}...)
	}
	return slices.DeleteFunc(ignored, func(f IgnoredFlag) bool { return !slices.Contains(r.Flags, f.Name) })
}

// FitArgs returns the flags of a kube-scheduler for another release: without the feature gates that
// [FitGates] leaves out, with a note for each.
func FitArgs(args []string, r Release) (fitting, notes []string, err error) {
	const flag = "feature-gates"
	for _, arg := range args {
		gates, isGates := FindFlag([]string{arg}, flag)
		if !isGates {
			fitting = append(fitting, arg)
			continue
		}
		kept, left, err := FitGates(gates.Value, r)
		if err != nil {
			return nil, nil, err
		}
		notes = append(notes, left...)
		if kept != "" {
			fitting = append(fitting, "--"+flag+"="+kept)
		}
	}
	return fitting, notes, nil
}
