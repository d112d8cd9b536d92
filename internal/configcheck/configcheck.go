// Package configcheck has a kube-scheduler binary check a configuration, offline.
package configcheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pmk-sched/pmk-sched/profiles"
)

// Binary is a kube-scheduler that can be run on this machine.
type Binary struct {
	Path string
	// Origin is where it comes from, for messages: "the build cache".
	Origin string
}

// ErrNoBinary is returned when the binary that will read the configuration is unavailable or does not run on this machine.
var ErrNoBinary = errors.New("no kube-scheduler binary for the check")

// ErrPartlyChecked is returned when the binary decoded, defaulted and validated the configuration, but could not initialize every plugin
// offline.
var ErrPartlyChecked = errors.New("the configuration is valid, but not all plugins could be initialized with their arguments")

// RefusedError is returned when the binary refuses a configuration.
type RefusedError struct{ Reason string }

// Error returns the reason.
func (e *RefusedError) Error() string { return e.Reason }

// Invalid reports that the configuration is wrong.
func (e *RefusedError) Invalid() bool { return true }

// Hint returns what the user can do.
func (e *RefusedError) Hint() string {
	return "print the rendered configuration with `pmk-sched render`"
}

// standInServer is the address of the API server during the check. Nothing listens there.
const standInServer = "127.0.0.1:1"

// standInKubeconfig is the kubeconfig during the check: the binary requires the file that its configuration names.
const standInKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "https://` + standInServer + `"}}]
users: [{name: none, user: {}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
current-context: none
`

// offlineTimeout bounds the run of the binary, which takes well under a second.
const offlineTimeout = 30 * time.Second

// Check has a kube-scheduler binary decode, default and validate a configuration. It needs no API server: with --write-config-to the
// scheduler writes the defaulted configuration and exits before it connects (cmd/kube-scheduler/app/server.go, Setup). kubeconfig is the
// path in the pod that the configuration names; it is replaced by a stand-in. args are more flags of the scheduler. dir is a working
// directory. The error is a [*RefusedError] if the binary refuses the configuration, and [ErrPartlyChecked] if a plugin calls the API
// server when it is initialized, or waits for it: everything else is checked before.
func Check(ctx context.Context, binary Binary, dir string, configuration []byte, kubeconfig string, args []string) error {
	standIn, config, out := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "config.yaml"), filepath.Join(dir, "out.yaml")
	text, err := profiles.WithoutFiles(configuration)
	if err != nil {
		return err
	}
	if text, err = standInListeners(bytes.ReplaceAll(text, []byte(kubeconfig), []byte(standIn))); err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(standIn, []byte(standInKubeconfig), 0o600), os.WriteFile(config, text, 0o600)); err != nil {
		return fmt.Errorf("write configuration to check: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, offlineTimeout)
	defer cancel()
	args = append([]string{"--config", config, "--secure-port=0", "--master=https://" + standInServer, "--write-config-to", out}, args...)
	cmd := exec.CommandContext(limited, binary.Path, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, []string{"HOME=" + dir, "TMPDIR=" + dir}, time.Second
	output, runErr := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return fmt.Errorf("run %s --write-config-to: %w", binary.Path, context.Cause(ctx))
	}
	var exit *exec.ExitError
	if runErr != nil && !errors.As(runErr, &exit) {
		return fmt.Errorf("%w: run %s: %w", ErrNoBinary, binary.Path, runErr)
	}
	if _, err := os.Stat(out); runErr == nil && err == nil {
		return nil
	}
	if limited.Err() != nil {
		return fmt.Errorf("%w: one of them seems to wait for the API server: no output for %s", ErrPartlyChecked, offlineTimeout)
	}
	reason := exitReason(output, config, "the configuration")
	if asksServer.MatchString(reason) {
		return fmt.Errorf("%w: %s", ErrPartlyChecked, reason)
	}
	return &RefusedError{Reason: "the scheduler refuses the configuration: " + reason}
}

// WithPolicy returns the flags of a configuration for [Check]. A Policy, which the scheduler will read from a ConfigMap, is written to a file
// in dir.
func WithPolicy(dir string, configuration *profiles.Rendered) ([]string, error) {
	if len(configuration.Policy) == 0 {
		return configuration.Args, nil
	}
	text, err := profiles.WithoutFiles(configuration.Policy)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "policy.cfg")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, fmt.Errorf("write Policy to check: %w", err)
	}
	return append(slices.Clone(configuration.Args), "--policy-config-file="+file), nil
}

// listener matches the fields that make 1.20–1.22 listen as soon as they have read the configuration.
var listener = regexp.MustCompile(`(?m)^((?:healthz|metrics)BindAddress: *)(["']?)([^\s"']*:[0-9]+)["']?`)

// standInListeners replaces the plain HTTP addresses of a configuration by free ones, since the running scheduler may use them. Equal
// addresses stay equal. Invalid ones do not change, so that the binary refuses them.
func standInListeners(configuration []byte) ([]byte, error) {
	free := map[string]string{}
	for _, found := range listener.FindAllSubmatch(configuration, -1) {
		address := string(found[3])
		_, text, err := net.SplitHostPort(address)
		if err != nil {
			continue
		}
		if port, err := strconv.Atoi(text); err != nil || port < 1 || port > 65535 || free[address] != "" {
			continue
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port for the check: %w", err)
		}
		// Each stays open until all are found, so that they differ.
		defer func() { _ = l.Close() }()
		free[address] = l.Addr().String()
	}
	return listener.ReplaceAllFunc(configuration, func(setting []byte) []byte {
		parts := listener.FindSubmatch(setting)
		if other := free[string(parts[3])]; other != "" {
			return append(bytes.Clone(parts[1]), other...)
		}
		return setting
	}), nil
}

// asksServer matches the error of a plugin that calls the API server when it is initialized
// (k8s.io/kubernetes/pkg/scheduler/framework/runtime/framework.go, NewFramework).
var asksServer = regexp.MustCompile(`initializing plugin "[^"]*": .*` + regexp.QuoteMeta(standInServer) + `[/: "]`)

// klogPrefix matches the prefix of a klog message:
// "E1121 07:34:01.123456   12345 server.go:30] ".
var klogPrefix = regexp.MustCompile(`^[IWEF]\d{4} [\d:.]+ +\d+ [^\]]+\] `)

// failedCommand matches the last line of releases from 1.23 on (k8s.io/component-base/cli, run.go); older ones print the bare error.
var failedCommand = regexp.MustCompile(`^"command failed" err=("(?:[^"\\]|\\.)*")`)

// exitReason returns the error that a kube-scheduler prints before it exits: the last line that is neither usage nor information. name
// replaces the path of the temporary file.
func exitReason(output []byte, file, name string) string {
	var last string
	for _, line := range strings.Split(string(output), "\n") {
		bare := strings.TrimSpace(klogPrefix.ReplaceAllString(line, ""))
		information := strings.HasPrefix(line, "I") && klogPrefix.MatchString(line)
		usage := strings.HasPrefix(line, " ") || strings.HasPrefix(bare, "Usage:") || strings.HasSuffix(bare, " flags:")
		if bare == "" || information || usage {
			continue
		}
		last = bare
	}
	if last == "" {
		last = "no reason given"
	}
	if quoted := failedCommand.FindStringSubmatch(last); quoted != nil {
		if text, err := strconv.Unquote(quoted[1]); err == nil {
			last = text
		}
	}
	return strings.ReplaceAll(strings.TrimPrefix(last, "Error: "), file, name)
}
