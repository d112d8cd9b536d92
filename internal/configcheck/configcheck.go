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
	// Origin says where it comes from, for messages: "the build's cache".
	Origin string
}

// ErrNoBinary says that the binary that will read the configuration cannot be
// had or run here, so that the offline check is left out, with a warning.
var ErrNoBinary = errors.New("no kube-scheduler binary to ask")

// ErrPartlyChecked says that the binary decoded, defaulted and validated the
// configuration, but could not make every plugin of its arguments offline.
var ErrPartlyChecked = errors.New("the configuration is valid, but plugins were not tried with their arguments")

// RefusedError says why the binary refuses a configuration.
type RefusedError struct{ Reason string }

// Error returns the reason.
func (e *RefusedError) Error() string { return e.Reason }

// Invalid reports that the configuration is wrong.
func (e *RefusedError) Invalid() bool { return true }

// Hint returns what to try.
func (e *RefusedError) Hint() string {
	return "see the configuration as it was rendered with `pmk-sched render`"
}

// standInServer is the API server while a configuration is checked. Nothing
// listens there.
const standInServer = "127.0.0.1:1"

// standInKubeconfig satisfies the binary, which wants the kubeconfig named in
// its configuration to exist; it reaches no server.
const standInKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "https://` + standInServer + `"}}]
users: [{name: none, user: {}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
current-context: none
`

// offlineTimeout bounds the run of the binary; it takes well under a second.
const offlineTimeout = 30 * time.Second

// Check has the scheduler's own binary decode, default and validate a
// configuration. It needs no API server: with --write-config-to the scheduler
// writes what it understood and exits before it connects
// (cmd/kube-scheduler/app/server.go, Setup). The configuration names
// kubeconfig, a path in the pod; a stand-in takes its place. args are the flags
// that go with the configuration. dir is a folder to work in. The error is an
// [*RefusedError] where the binary refuses the configuration, and
// [ErrPartlyChecked] where a plugin asks the API server, or waits for it, as it
// is made: that comes after all else is checked.
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
		return fmt.Errorf("write the configuration to check: %w", err)
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
		return fmt.Errorf("%w: one of them seems to wait for the API server: nothing was heard of the scheduler for %s", ErrPartlyChecked, offlineTimeout)
	}
	words := lastWords(output, config, "the configuration")
	if asksServer.MatchString(words) {
		return fmt.Errorf("%w: %s", ErrPartlyChecked, words)
	}
	return &RefusedError{Reason: "the scheduler refuses the configuration: " + words}
}

// WithPolicy returns the flags that go with a configuration when its binary checks
// it: a Policy that it will read from a ConfigMap is a file in dir then.
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
		return nil, fmt.Errorf("write the Policy to check: %w", err)
	}
	return append(slices.Clone(configuration.Args), "--policy-config-file="+file), nil
}

// listener is a setting that makes 1.20–1.22 listen as soon as they have read it.
var listener = regexp.MustCompile(`(?m)^((?:healthz|metrics)BindAddress: *)(["']?)([^\s"']*:[0-9]+)["']?`)

// standInListeners replaces the plain HTTP listeners of a configuration by free
// ones: theirs may be in use, by the very scheduler that the configuration is for.
// Equal ones stay equal. What is no address is left for the binary to refuse.
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
			return nil, fmt.Errorf("find a free port to check the configuration with: %w", err)
		}
		// Each is held until all are found, so that no two are the same.
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

// asksServer is how a plugin fails that asks the API server when it is made
// (k8s.io/kubernetes/pkg/scheduler/framework/runtime/framework.go, NewFramework).
var asksServer = regexp.MustCompile(`initializing plugin "[^"]*": .*` + regexp.QuoteMeta(standInServer) + `[/: "]`)

// klogPrefix is what klog writes before a message:
// "E1121 07:34:01.123456   12345 server.go:30] ".
var klogPrefix = regexp.MustCompile(`^[IWEF]\d{4} [\d:.]+ +\d+ [^\]]+\] `)

// failedCommand is the last line of releases from 1.23 on
// (k8s.io/component-base/cli, run.go); older ones write the bare error.
var failedCommand = regexp.MustCompile(`^"command failed" err=("(?:[^"\\]|\\.)*")`)

// lastWords finds the line in which a kube-scheduler says why it ends: the last
// that is neither usage nor information. The name of a temporary file is
// replaced by what the person knows.
func lastWords(output []byte, file, meaning string) string {
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
		last = "it gives no reason"
	}
	if quoted := failedCommand.FindStringSubmatch(last); quoted != nil {
		if text, err := strconv.Unquote(quoted[1]); err == nil {
			last = text
		}
	}
	return strings.ReplaceAll(strings.TrimPrefix(last, "Error: "), file, meaning)
}
