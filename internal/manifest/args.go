package manifest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/versions"
)

// ownFlags hold the deployment together; each is set by something else.
func ownFlags() map[string]string {
	return map[string]string{
		"config":                          "the configuration is given with --config or --preset",
		"secure-port":                     "the port is given with --port",
		"authentication-kubeconfig":       "the credentials are given with --credentials",
		"authorization-kubeconfig":        "the credentials are given with --credentials",
		"kubeconfig":                      "the credentials are given with --credentials",
		"master":                          "the API server is the one in the credentials",
		"leader-elect":                    "leader election is in the configuration, and on where there are several replicas",
		"leader-elect-resource-name":      "the lease carries the scheduler's name",
		"leader-elect-resource-namespace": "the lease is kept where the scheduler has rights to it",
		"leader-elect-resource-lock":      "the lock is a lease, which every release accepts",
		"policy-configmap":                "a Policy is given with --policy-configmap of pmk-sched",
		"policy-configmap-namespace":      "a Policy is given with --policy-configmap of pmk-sched",
		"policy-config-file":              "a Policy is given with --policy-configmap of pmk-sched",
		"use-legacy-policy-config":        "a Policy is given with --policy-configmap of pmk-sched",
		"write-config-to":                 "a scheduler that writes its configuration ends at once",
	}
}

// flag is one command-line flag; whole is how it is written.
type flag struct{ name, value, whole string }

func parseFlag(arg string) (flag, error) {
	name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	if !strings.HasPrefix(arg, "-") || name == "" || strings.ContainsAny(name, " \t\n") {
		return flag{}, invalid("write each as --name=value", "scheduler argument %q is not a flag", arg)
	}
	return flag{name, value, arg}, nil
}

// args returns the flags of kube-scheduler. Everything that the configuration can
// hold is in the configuration; these are the ones it cannot.
func (s Scheduler) args(rules versions.Rules) ([]string, error) {
	kubeconfig := KubeconfigPath(s.Name)
	args := []string{
		"--config=" + ConfigPath(s.Name),
		fmt.Sprintf("--secure-port=%d", s.Port),
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--v=2",
	}
	// The gate registers the scheduler for the default one's lease, whatever its
	// configuration says.
	if rules.CoordinatedLeaderElection {
		args = append(args, "--feature-gates=CoordinatedLeaderElection=false")
	}
	if policy := s.policyName(); policy != "" {
		args = append(args, "--policy-configmap="+policy, "--policy-configmap-namespace="+s.Namespace)
	}
	for _, arg := range s.Configuration.Args {
		// On a network of its own the pod's loopback is of no use: the kubelet could
		// not probe it.
		if strings.HasPrefix(arg, "--bind-address=") && !s.Credentials.hostNetwork() {
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

// allow refuses a flag that is set here, or that the release does not know: the
// scheduler would stop at it.
func (s Scheduler) allow(f flag, rules versions.Rules) error {
	if why, own := ownFlags()[f.name]; own {
		return invalid(why, "scheduler argument --%s is set by pmk-sched", f.name)
	}
	if slices.Contains(rules.RemovedFlags, f.name) {
		return invalid("leave it out; what it said belongs into the configuration, or is gone",
			"scheduler argument --%s does not exist in %s", f.name, s.Release)
	}
	return nil
}

// override puts a flag in the place of the one with its name, or at the end.
// Feature gates add up: a gate named again wins over the earlier one.
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

// bindAddress returns the address that the flags bind the secure port to, "" for
// all.
func bindAddress(args []string) string {
	for _, arg := range args {
		if f, err := parseFlag(arg); err == nil && f.name == "bind-address" && f.value != "0.0.0.0" && f.value != "::" {
			return f.value
		}
	}
	return ""
}
