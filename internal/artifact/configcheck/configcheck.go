// Package configcheck has a kube-scheduler binary check a configuration, offline.
package configcheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/artifact/sandbox"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// Binary is a kube-scheduler that can be run on this machine.
type Binary struct {
	Path string
	// Origin is its source, for messages: "the build cache".
	Origin string
	// Missing is the program that the container's command names and its image does not have, so that
	// the container would not start. It is empty if no program is missing, or if that is unknown.
	Missing string
	// Label is the release in the image's label, which whoever made the image chose. It is empty if
	// the label is unknown.
	Label string
}

// ErrNoBinary is returned when the binary that will read the configuration is unavailable or does
// not run on this machine.
var ErrNoBinary = errors.New("no kube-scheduler binary for the check")

// ErrPartlyChecked is returned when the binary decoded, defaulted and validated the configuration,
// but could not initialize every plugin offline.
var ErrPartlyChecked = errors.New(
	"the configuration is valid, but not all plugins could be initialized with their arguments")

// RefusedError is returned when the binary refuses a configuration.
type RefusedError struct{ Reason string }

// Error returns the reason.
func (e *RefusedError) Error() string { return e.Reason }

// Invalid reports that the configuration is wrong.
func (e *RefusedError) Invalid() bool { return true }

// Hint returns a suggestion for the user.
func (e *RefusedError) Hint() string {
	return "print the rendered configuration with `pmk-sched render`"
}

// standInServer is the address of the API server during the check. Nothing listens there.
const standInServer = "127.0.0.1:1"

// standInKubeconfig is the kubeconfig during the check: the binary requires the file that its
// configuration names.
const standInKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "https://` + standInServer + `"}}]
users: [{name: none, user: {}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
current-context: none
`

// offlineTimeout bounds the binary's run, which takes well under a second.
const offlineTimeout = 30 * time.Second

// Names of the files that the binary reads.
const (
	configurationFile = "configuration-to-check.yaml"
	kubeconfigFile    = "kubeconfig"
	policyFile        = "policy.cfg"
)

// Request is a configuration to check.
type Request struct {
	// Configuration is a KubeSchedulerConfiguration. Kubeconfig is the path in the pod that it
	// names, which is replaced for the check.
	Configuration []byte
	Kubeconfig    string
	// Policy is a legacy Policy, which the scheduler will read from a ConfigMap; it may be empty.
	Policy []byte
	// Args are the scheduler's flags. The check leaves out flags for files, addresses, servers and the
	// Policy.
	Args []string
	// Warn reports that the binary runs with less isolation than usual; it may be nil.
	Warn func(text string)
}

// Check has a kube-scheduler binary decode, default and validate a configuration, in a sandbox: the
// binary may be of an image that others made. It needs no API server: with --write-config-to the
// scheduler writes the defaulted configuration and exits before it connects
// (cmd/kube-scheduler/app/server.go, Setup). dir is a private directory for the sandbox. The error
// is a [*RefusedError] if the binary refuses the configuration, and [ErrPartlyChecked] if a plugin
// calls the API server when it is initialized, or waits for it: everything else is checked before.
func Check(ctx context.Context, binary Binary, dir string, r Request) error {
	program, err := r.program(binary)
	if err != nil {
		return err
	}
	result, err := run(ctx, dir, program)
	if err != nil {
		return err
	}
	if result.Shared != "" && r.Warn != nil {
		r.Warn(
			"the kube-scheduler that checks the configuration runs as an unprivileged user, but with access to the network " +
				"and the processes of this machine: " + result.Shared)
	}
	if result.Status == 0 && result.Wrote {
		return nil
	}
	if result.TimedOut {
		return fmt.Errorf("%w: one of them seems to wait for the API server: no output for %s", ErrPartlyChecked,
			offlineTimeout)
	}
	reason := exitReason(result.Text, sandbox.Path(configurationFile), "the configuration")
	if asksServer.MatchString(reason) {
		return fmt.Errorf("%w: %s", ErrPartlyChecked, reason)
	}
	return &RefusedError{Reason: "the scheduler refuses the configuration: " + reason}
}

func (r Request) program(binary Binary) (sandbox.Program, error) {
	var none sandbox.Program
	text, err := profiles.WithoutFiles(r.Configuration)
	if err != nil {
		return none, err
	}
	text, err = standInListeners(bytes.ReplaceAll(text, []byte(r.Kubeconfig), []byte(sandbox.Path(kubeconfigFile))))
	if err != nil {
		return none, err
	}
	args := []string{
		"--config", sandbox.Path(configurationFile), "--secure-port=0", "--master=https://" + standInServer,
		"--write-config-to", sandbox.OutputPath,
	}
	args = append(args, checkedFlags(r.Args)...)
	files := map[string][]byte{kubeconfigFile: []byte(standInKubeconfig), configurationFile: text}
	if len(r.Policy) > 0 {
		if files[policyFile], err = profiles.WithoutFiles(r.Policy); err != nil {
			return none, err
		}
		args = append(args, "--policy-config-file="+sandbox.Path(policyFile))
	}
	return sandbox.Program{Path: binary.Path, Args: args, Files: files, Timeout: offlineTimeout}, nil
}

// run runs the binary. The error is [ErrNoBinary] unless ctx has ended.
func run(ctx context.Context, dir string, program sandbox.Program) (*sandbox.Result, error) {
	result, err := sandbox.Run(ctx, dir, program)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", ErrNoBinary, err)
	}
	return result, err
}

// listener matches the fields that make 1.20–1.22 listen as soon as they have read the
// configuration.
var listener = regexp.MustCompile(`(?m)^((?:healthz|metrics)BindAddress: *)(["']?)([^\s"']*:[0-9]+)["']?`)

// standInListeners replaces the plain HTTP addresses of a configuration by free ones, since the
// running scheduler may use them. Equal addresses stay equal. Invalid ones do not change, so that
// the binary refuses them.
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

// failedCommand matches the last line of releases from 1.23 on (k8s.io/component-base/cli, run.go);
// older ones print the bare error.
var failedCommand = regexp.MustCompile(`^"command failed" err=("(?:[^"\\]|\\.)*")`)

// exitReason returns the error that a kube-scheduler prints before it exits: a panic's message, or
// the last line that is neither usage nor information. name replaces the temporary file's path.
func exitReason(output []byte, file, name string) string {
	if reason, panicked := panicReason(string(output)); panicked {
		return strings.ReplaceAll(reason, file, name)
	}
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

// panicStart matches how the Go runtime begins the output of a program that panics, or that it ends
// itself.
var panicStart = regexp.MustCompile(`(?m)^(?:panic|fatal error): `)

// recovered matches the text that the runtime appends to the value of a panic that was recovered
// and raised again.
var recovered = regexp.MustCompile(` \[recovered[^\]]*\]$`)

// panicReason returns the message of a program that ended with a stack trace, with the place that
// caused it, and whether it did.
func panicReason(output string) (reason string, ok bool) {
	start := panicStart.FindStringIndex(output)
	if start == nil {
		return "", false
	}
	first, rest, _ := strings.Cut(output[start[1]:], "\n")
	reason = recovered.ReplaceAllString(first, "")
	message, trace, found := strings.Cut("\n"+rest, "\ngoroutine ")
	if !found {
		return "", false
	}
	for line := range strings.Lines(message) { // of a value with more lines, and of a signal
		if text := strings.TrimSpace(line); text != "" && !strings.HasPrefix(text, "[signal ") &&
			!strings.HasPrefix(text, "panic: ") {
			reason += " " + text
		}
	}
	if place := panicPlace(trace); place != "" {
		reason += ", at " + place
	}
	return "it panics: " + reason, true
}

// panicPlace returns the file and line of the first function in a trace that is not the runtime's.
func panicPlace(trace string) string {
	lines := strings.Split(trace, "\n")
	for i := 1; i+1 < len(lines) && lines[i] != ""; i += 2 { // a function, then its file
		if strings.HasPrefix(lines[i], "panic(") || strings.HasPrefix(lines[i], "runtime.") {
			continue
		}
		place, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
		return place
	}
	return ""
}
