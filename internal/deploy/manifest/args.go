package manifest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/profiles"
)

// Flags returns the flags of the scheduler's container.
func (s Scheduler) Flags() ([]string, error) { return s.withDefaults().args() }

func (s Scheduler) args() ([]string, error) {
	kubeconfig := KubeconfigPath(s.Name)
	line := profiles.CommandLine{
		Release: s.Release, Given: s.Args, Configured: slices.Clone(s.Configuration.Args),
		Process: []string{
			"--config=" + configPath(s.Name),
			fmt.Sprintf("--secure-port=%d", s.Port),
			"--authentication-kubeconfig=" + kubeconfig,
			"--authorization-kubeconfig=" + kubeconfig,
			"--v=2",
		},
	}
	if policy := s.policyName(); policy != "" {
		line.Process = append(line.Process, "--policy-configmap="+policy, "--policy-configmap-namespace="+s.Namespace)
	}
	if !s.Credentials.HostNetwork() { // the kubelet cannot probe the pod's loopback address
		line.Configured = slices.DeleteFunc(line.Configured,
			func(arg string) bool { return strings.HasPrefix(arg, "--bind-address=") })
	}
	return line.Flags()
}

// BindAddress returns the address that the scheduler binds its secure port to, or "" for all
// addresses.
func (s Scheduler) BindAddress() (string, error) {
	args, err := s.Flags()
	return bindAddress(args), err
}

// bindAddress returns the address that the flags bind the secure port to, "" for all addresses.
func bindAddress(args []string) string {
	for _, arg := range args {
		f, err := profiles.ParseFlag(arg)
		if err == nil && f.Name == "bind-address" && f.Value != "0.0.0.0" && f.Value != "::" {
			return f.Value
		}
	}
	return ""
}
