package manifest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
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

// flag is a command-line flag; whole is its text.
type flag struct{ name, value, whole string }

func parseFlag(arg string) (flag, error) {
	name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	if !strings.HasPrefix(arg, "-") || name == "" || strings.ContainsAny(name, " \t\n") {
		return flag{}, problem.Invalidf("write each as --name=value", "scheduler argument %q is not a flag", arg)
	}
	return flag{name, value, arg}, nil
}

// args returns the flags of kube-scheduler for everything that the configuration cannot express.
func (s Scheduler) args(rules versions.Rules) ([]string, error) {
	kubeconfig := KubeconfigPath(s.Name)
	args := []string{
		"--config=" + ConfigPath(s.Name),
		fmt.Sprintf("--secure-port=%d", s.Port),
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--v=2",
	}
	// With this feature gate the scheduler uses the lease of the default scheduler, regardless of
	// its configuration.
	if rules.CoordinatedLeaderElection {
		args = append(args, "--feature-gates=CoordinatedLeaderElection=false")
	}
	if policy := s.policyName(); policy != "" {
		args = append(args, "--policy-configmap="+policy, "--policy-configmap-namespace="+s.Namespace)
	}
	for _, arg := range s.Configuration.Args {
		// In a pod network, the kubelet cannot probe the loopback address of the pod.
		if strings.HasPrefix(arg, "--bind-address=") && !s.Credentials.HostNetwork() {
			continue
		}
		args = append(args, arg)
	}
	for _, arg := range s.Args {
		given, err := parseFlag(arg)
		if err != nil {
			return nil, err
		}
		if err := s.allow(given, rules); err != nil {
			return nil, err
		}
		args = override(args, given)
	}
	return args, nil
}

// allow refuses a flag that pmk-sched sets or that the release does not have: the scheduler would
// exit.
func (s Scheduler) allow(f flag, rules versions.Rules) error {
	if why, own := reservedFlags()[f.name]; own {
		return problem.Invalidf(why, "scheduler argument --%s is set by pmk-sched", f.name)
	}
	if slices.Contains(rules.RemovedFlags, f.name) {
		return problem.Invalidf("remove it; use the configuration if it has an equivalent field",
			"scheduler argument --%s does not exist in %s", f.name, s.Release)
	}
	return nil
}

// override replaces the flag with the same name, or appends the flag. Feature gates are joined; the
// last value of a gate wins.
func override(args []string, given flag) []string {
	for i, arg := range args {
		set, err := parseFlag(arg)
		if err != nil || set.name != given.name {
			continue
		}
		if given.name == "feature-gates" {
			args[i] += "," + given.value
		} else {
			args[i] = given.whole
		}
		return args
	}
	return append(args, given.whole)
}

// BindAddress returns the address that the scheduler binds its secure port to, or "" for all
// addresses.
func (s Scheduler) BindAddress() (string, error) {
	rules, err := versions.Select(s.Release)
	if err != nil {
		return "", err
	}
	args, err := s.withDefaults().args(rules)
	return bindAddress(args), err
}

// bindAddress returns the address that the flags bind the secure port to, "" for all addresses.
func bindAddress(args []string) string {
	for _, arg := range args {
		if f, err := parseFlag(arg); err == nil && f.name == "bind-address" && f.value != "0.0.0.0" && f.value != "::" {
			return f.value
		}
	}
	return ""
}
