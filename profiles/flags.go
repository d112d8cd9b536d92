package profiles

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// reservedFlags are the flags that pmk-sched sets, with the way to change each.
func reservedFlags() map[string]string {
	return map[string]string{
		"config":                          "the configuration is in spec.configuration, or `deploy --config` or `--preset`",
		"secure-port":                     "set spec.ports.secure, or `deploy --port`, for another port than the first free one",
		"authentication-kubeconfig":       "the credentials are in spec.credentials, or `deploy --credentials`",
		"authorization-kubeconfig":        "the credentials are in spec.credentials, or `deploy --credentials`",
		"kubeconfig":                      "the credentials are in spec.credentials, or `deploy --credentials`",
		"master":                          "the API server is the one in the credentials",
		"leader-elect":                    "leader election is set in the configuration, and is on with several replicas",
		"leader-elect-resource-name":      "the lease has the scheduler's name",
		"leader-elect-resource-namespace": "the lease is in the namespace in which the scheduler has rights to it",
		"leader-elect-resource-lock":      "the lock is a lease, which every release accepts",
		"lock-object-name":                "the lease has the scheduler's name",
		"lock-object-namespace":           "the lease is in the namespace in which the scheduler has rights to it",
		"policy-configmap":                "a Policy is in spec.configuration.policyConfigMap, or `deploy --policy-configmap`",
		"policy-configmap-namespace":      "a Policy is in spec.configuration.policyConfigMap, or `deploy --policy-configmap`",
		"policy-config-file":              "a Policy is in spec.configuration.policyConfigMap, or `deploy --policy-configmap`",
		"use-legacy-policy-config":        "a Policy is in spec.configuration.policyConfigMap, or `deploy --policy-configmap`",
		"write-config-to":                 "a scheduler that writes its configuration exits immediately",
		"help":                            "a scheduler that prints its flags exits immediately",
		"version":                         "a scheduler that prints its version exits immediately",
	}
}

// writingFlags are the flags with which kube-scheduler writes files, with the behavior without
// each. The root file system of its pods is read-only.
func writingFlags() map[string]string {
	return map[string]string{
		"cert-dir": "without it, the scheduler keeps its certificate in memory",
		"log-dir":  "without it, the scheduler writes its log to standard error: `pmk-sched logs` prints it",
		"log-file": "without it, the scheduler writes its log to standard error: `pmk-sched logs` prints it",
	}
}

// FlagLeftOut returns why pmk-sched does not keep a flag when it takes over a scheduler: it sets
// the flag itself, its pods cannot write files, or kube-scheduler ignores the flag with a
// configuration in at least one release; field is the configuration's field in its place. Both are
// empty for a flag that belongs into [CommandLine].Given.
func FlagLeftOut(name string) (why, field string) {
	if why, own := reservedFlags()[name]; own {
		return why, ""
	}
	if without, writes := writingFlags()[name]; writes {
		return "the file system of the scheduler's pods is read-only; " + without, ""
	}
	if name == "port" || name == "address" {
		return "1.23 and later releases have no plain HTTP port, and pmk-sched closes it before", ""
	}
	for _, r := range versions.Releases() {
		for _, ignored := range r.Rules().IgnoredFlags() {
			if ignored.Name == name {
				return "kube-scheduler ignores it with a configuration; set " + ignored.Field + " there", ignored.Field
			}
		}
	}
	return "", ""
}

// Flag is a command-line flag; Text is the whole argument. Its name is written with hyphens, which
// every release accepts.
type Flag struct {
	Name, Value, Text string
	hasValue          bool
}

// ParseFlag parses an argument --name=value, or --name for a boolean flag. -v is the only flag of
// kube-scheduler with a short name and a value.
func ParseFlag(arg string) (Flag, error) {
	parsed := versions.ParseFlags([]string{arg})[0]
	f := Flag{Name: parsed.Name, Value: parsed.Value, Text: "--" + parsed.Name, hasValue: parsed.HasValue}
	if f.hasValue {
		f.Text += "=" + f.Value
	}
	switch {
	case f.Name == "" || strings.ContainsAny(f.Name, " \t\n"):
	case strings.HasPrefix(arg, "--") && !strings.HasPrefix(arg, "---"):
		return f, nil
	case f.Name == "h":
		return Flag{Name: "help", Text: arg}, nil
	case strings.HasPrefix(arg, "-v"):
		value := strings.TrimPrefix(arg[len("-v"):], "=")
		if strings.Trim(value, "0123456789") == "" {
			return Flag{Name: "v", Value: value, Text: arg, hasValue: value != ""}, nil
		}
	}
	return Flag{}, schema.NewError("write each as --name=value", "scheduler argument %q is not a flag", arg)
}

// CommandLine contains the flags for a release's kube-scheduler.
type CommandLine struct {
	Release versions.Release
	// Process are flags for the process's files and port, and Configured the flags for its [Rendered]
	// configuration.
	Process, Configured []string
	// Given are flags of the user, --name=value each. They override the other flags.
	Given []string
}

// Flags returns the flags for everything that the configuration cannot express. A given flag that
// pmk-sched sets, or that the release does not have, is an error: the scheduler would exit.
func (c CommandLine) Flags() ([]string, error) {
	rules, err := versions.Select(c.Release)
	if err != nil {
		return nil, err
	}
	args := slices.Clone(c.Process)
	// With this feature gate the scheduler uses the default scheduler's lease, regardless of its
	// configuration.
	if rules.CoordinatedLeaderElection {
		args = append(args, "--feature-gates=CoordinatedLeaderElection=false")
	}
	args = append(args, c.Configured...)
	for _, arg := range c.Given {
		given, err := ParseFlag(arg)
		if err != nil {
			return nil, err
		}
		if err := c.allow(given, rules); err != nil {
			return nil, err
		}
		args = SetFlag(args, given)
	}
	return args, nil
}

// allow refuses a flag that pmk-sched sets, or with which the scheduler would exit.
func (c CommandLine) allow(f Flag, rules versions.Rules) error {
	if why, own := reservedFlags()[f.Name]; own {
		return schema.NewError(why, "scheduler argument --%s is set by pmk-sched", f.Name)
	}
	releases, exists := versions.FlagReleases(f.Name), slices.Contains(rules.Flags, f.Name)
	without, writes := writingFlags()[f.Name]
	switch meant := schema.Nearest(f.Name, rules.Flags); {
	case !exists && releases != "":
		return schema.NewError("remove it; use the configuration if it has an equivalent field",
			"scheduler argument --%s does not exist in %s: kube-scheduler has it %s", f.Name, c.Release, releases)
	case !exists && meant != "":
		return schema.NewError(fmt.Sprintf("did you mean --%s?", meant), "scheduler argument --%s does not exist in %s",
			f.Name, c.Release)
	case exists && !f.hasValue && !versions.IsBooleanFlag(f.Name):
		return schema.NewError(fmt.Sprintf("write it as --%s=value", f.Name), "scheduler argument --%s has no value", f.Name)
	case writes:
		return schema.NewError("remove it: "+without,
			"scheduler argument --%s: the file system of the scheduler's pods is read-only", f.Name)
	}
	return nil
}

// Warnings returns a warning for each given flag that has no effect, or that kube-scheduler of the
// release does not have.
func (c CommandLine) Warnings() []string {
	rules := c.Release.Rules()
	ignored := rules.IgnoredFlags()
	var warnings []string
	for _, arg := range c.Given {
		f, err := ParseFlag(arg)
		if err != nil {
			continue // Flags returns the error
		}
		i := slices.IndexFunc(ignored, func(other versions.IgnoredFlag) bool { return other.Name == f.Name })
		switch {
		case i >= 0:
			warnings = append(warnings, fmt.Sprintf(
				"scheduler argument --%s has no effect: kube-scheduler ignores it with a configuration; set %s there instead",
				f.Name, ignored[i].Field))
		case !slices.Contains(rules.Flags, f.Name):
			warnings = append(warnings, fmt.Sprintf("scheduler argument --%s is not a flag of kube-scheduler %s: the scheduler "+
				"starts only if its image adds the flag", f.Name, c.Release))
		}
	}
	return warnings
}

// SetFlag replaces the flag with the same name, or appends the flag. Feature gates are joined; the
// last value of a gate wins.
func SetFlag(args []string, given Flag) []string {
	for i, arg := range args {
		set, err := ParseFlag(arg)
		if err != nil || set.Name != given.Name {
			continue
		}
		if given.Name == "feature-gates" {
			args[i] += "," + given.Value
		} else {
			args[i] = given.Text
		}
		return args
	}
	return append(args, given.Text)
}
