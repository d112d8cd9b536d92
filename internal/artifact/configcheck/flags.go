package configcheck

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/artifact/sandbox"
	"github.com/pmk-sched/pmk-sched/versions"
)

// FlagsError is returned when the binary refuses its flags.
type FlagsError struct{ Reason string }

// Error returns the reason.
func (e *FlagsError) Error() string { return "the scheduler refuses its flags: " + e.Reason }

// Invalid reports that the flags are wrong.
func (e *FlagsError) Invalid() bool { return true }

// Version returns the output of the binary's --version, in a sandbox as in [Check]. The binary
// parses the flags before it prints the version: the error is a [*FlagsError] if it does not have
// one of them or refuses its value. Files and addresses in the flags are not used.
func Version(ctx context.Context, binary Binary, dir string, flags ...string) (string, error) {
	result, err := run(ctx, dir, sandbox.Program{
		Path: binary.Path, Args: slices.Concat([]string{"--version"}, flags), Timeout: offlineTimeout,
	})
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(result.Text))
	switch {
	case result.Status != 0 && len(flags) > 0 && !result.TimedOut:
		return "", &FlagsError{Reason: exitReason(result.Text, sandbox.Path(configurationFile), "the configuration")}
	case result.Status != 0:
		return "", fmt.Errorf("run %s --version: exit status %d: %s", binary.Path, result.Status, text)
	}
	return text, nil
}

// reportedVersion matches the output of kube-scheduler --version. Deprecated flags print a line
// before it.
var reportedVersion = regexp.MustCompile(`(?m)^Kubernetes (v\S+)`)

// ParseVersion returns the release in [Version] output. ok is false if the output does not name a
// Kubernetes release: some projects' programs have their own versions.
func ParseVersion(output string) (release versions.Release, ok bool) {
	found := reportedVersion.FindStringSubmatch(output)
	if found == nil {
		return release, false
	}
	release, err := versions.FromServer(found[1])
	return release, err == nil && release.Major > 0
}

// checkedFlags returns the flags with which the binary checks a configuration. The check sets the
// others itself, or they name files that it does not have.
func checkedFlags(args []string) []string {
	excluded := []string{
		"config", "kubeconfig", "master", "authentication-kubeconfig", "authorization-kubeconfig", "bind-address",
		"secure-port", "address", "port",
		"cert-dir", "tls-cert-file", "tls-private-key-file", "tls-sni-cert-key", "client-ca-file",
		"requestheader-client-ca-file",
		"write-config-to", "log-file", "log-dir",
		"policy-configmap", "policy-configmap-namespace", "policy-config-file", "use-legacy-policy-config",
	}
	var kept []string
	for _, f := range versions.ParseFlags(args) {
		if !slices.Contains(excluded, f.Name) {
			kept = append(kept, f.Words...)
		}
	}
	return kept
}
