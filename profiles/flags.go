package profiles

import (
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// reservedFlags are the flags that pmk-sched sets, with the way to change each.
func reservedFlags() map[string]string {
	return map[string]string{
		"config":                          "the configuration is given with --config or --preset",
		"secure-port":                     "the port is given with --port",
		"authentication-kubeconfig":       "the credentials are given with --credentials",
		"authorization-kubeconfig":        "the credentials are given with --credentials",
		"kubeconfig":                      "the credentials are given with --credentials",
		"master":                          "the API server is the one in the credentials",
		"leader-elect":                    "leader election is set in the configuration, and is on with several replicas",
		"leader-elect-resource-name":      "the lease has the scheduler's name",
		"leader-elect-resource-namespace": "the lease is in the namespace in which the scheduler has rights to it",
		"leader-elect-resource-lock":      "the lock is a lease, which every release accepts",
		"policy-configmap":                "a Policy is given with --policy-configmap of pmk-sched",
		"policy-configmap-namespace":      "a Policy is given with --policy-configmap of pmk-sched",
		"policy-config-file":              "a Policy is given with --policy-configmap of pmk-sched",
		"use-legacy-policy-config":        "a Policy is given with --policy-configmap of pmk-sched",
		"write-config-to":                 "a scheduler that writes its configuration exits immediately",
	}
}

// Flag is a command-line flag; Text is the whole argument.
type Flag struct{ Name, Value, Text string }

// ParseFlag parses an argument --name=value.
func ParseFlag(arg string) (Flag, error) {
	name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	if !strings.HasPrefix(arg, "-") || name == "" || strings.ContainsAny(name, " \t\n") {
		return Flag{}, schema.NewError("write each as --name=value", "scheduler argument %q is not a flag", arg)
	}
	return Flag{name, value, arg}, nil
}

// CommandLine are the flags of a kube-scheduler of a release.
type CommandLine struct {
	Release versions.Release
	// Process are flags for the files and the port of the process, and Configured the flags of its
	// [Rendered] configuration.
	Process, Configured []string
	// Given are flags of the user, --name=value each. They override the others.
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
	// With this feature gate the scheduler uses the lease of the default scheduler, regardless of
	// its configuration.
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

func (c CommandLine) allow(f Flag, rules versions.Rules) error {
	if why, own := reservedFlags()[f.Name]; own {
		return schema.NewError(why, "scheduler argument --%s is set by pmk-sched", f.Name)
	}
	if slices.Contains(rules.RemovedFlags, f.Name) {
		return schema.NewError("remove it; use the configuration if it has an equivalent field",
			"scheduler argument --%s does not exist in %s", f.Name, c.Release)
	}
	return nil
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
