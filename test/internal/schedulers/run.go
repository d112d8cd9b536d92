package schedulers

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// StandInKubeconfig is a kubeconfig that reaches no server.
const StandInKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
users: [{name: none, user: {}}]
current-context: none
`

// Kubeconfigs are the paths that test documents name in clientConnection.kubeconfig. A scheduler
// that reads a configuration wants the file to exist, so each is replaced with a file of the test.
func Kubeconfigs() []string {
	return []string{
		"/etc/kubernetes/scheduler.conf",
		"/srv/kubernetes/kubeconfigs/kubeconfig-for-my-scheduler.yaml",
	}
}

func (s *Scheduler) writeFiles() error {
	for _, name := range Kubeconfigs() {
		if err := os.WriteFile(s.standIn(name), []byte(StandInKubeconfig), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (s *Scheduler) standIn(name string) string { return filepath.Join(s.dir, filepath.Base(name)) }

// Read makes the scheduler decode, default and validate a configuration, and initialise its plugins
// with it. It returns the configuration that the scheduler wrote with --write-config-to, or an
// error with its message. That needs no API server. Without flags, the same configuration is read
// once.
func (s *Scheduler) Read(ctx context.Context, config []byte, flags ...string) (string, error) {
	if len(flags) > 0 {
		return s.read(ctx, config, flags...)
	}
	made, _ := s.reads.LoadOrStore(string(config), &reading{})
	r := made.(*reading)
	r.once.Do(func() { r.written, r.err = s.read(ctx, config) })
	return r.written, r.err
}

// reading is the result of Read.
type reading struct {
	once    sync.Once
	written string
	err     error
}

func (s *Scheduler) read(ctx context.Context, config []byte, flags ...string) (string, error) {
	dir, path, err := s.place(config)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "written.yaml")
	arguments := append([]string{"--config", path, "--secure-port=0", "--master=https://127.0.0.1:1", "--write-config-to",
		out}, flags...)
	if _, err := s.run(ctx, s.Path, arguments...); err != nil {
		return "", err
	}
	written, err := os.ReadFile(out)
	if err != nil {
		return "", fmt.Errorf("kube-scheduler %s succeeded and wrote nothing: %w", s.Release, err)
	}
	return s.restore(string(written)), nil
}

// Run runs the scheduler with flags and returns its standard output.
func (s *Scheduler) Run(ctx context.Context, flags ...string) (string, error) {
	return s.run(ctx, s.Path, flags...)
}

// place writes a configuration to a new directory.
func (s *Scheduler) place(config []byte) (dir, path string, err error) {
	if dir, err = os.MkdirTemp(s.dir, "run-"); err != nil {
		return "", "", err
	}
	text := string(config)
	for _, name := range Kubeconfigs() {
		text = strings.ReplaceAll(text, name, s.standIn(name))
	}
	path = filepath.Join(dir, "configuration.yaml")
	return dir, path, os.WriteFile(path, []byte(text), 0o600)
}

// restore replaces the paths of the test by the paths in the documents.
func (s *Scheduler) restore(text string) string {
	for _, name := range Kubeconfigs() {
		text = strings.ReplaceAll(text, s.standIn(name), name)
	}
	return text
}

// Failure is a run of a scheduler that ended badly.
type Failure struct {
	Program string
	// Output is all that it printed to standard error.
	Output string
	Err    error
}

// Error returns the program, its error and the end of its output.
func (f *Failure) Error() string { return fmt.Sprintf("%s: %v: %s", f.Program, f.Err, tail(f.Output)) }

// Unwrap returns the error of the process.
func (f *Failure) Unwrap() error { return f.Err }

// ownNetwork returns a command that runs another in its own network namespace: 1.20–1.22 listen
// on the configured ports while they read a configuration, and would conflict with each other and
// other processes.
func ownNetwork() []string {
	return []string{"unshare", "--net", "sh", "-c", `ip link set lo up && exec "$0" "$@"`}
}

// run runs a program; a run that ended badly is a *Failure.
func (s *Scheduler) run(ctx context.Context, program string, arguments ...string) (string, error) {
	arguments = append([]string{program}, arguments...)
	if s.Rules.InsecurePort {
		arguments = append(ownNetwork(), arguments...)
	}
	cmd := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", &Failure{Program: filepath.Base(program) + " " + s.Release.String(), Output: stderr.String(), Err: err}
	}
	return stdout.String(), nil
}

// tail returns the last lines of an output, without the command's usage that follows the error in
// old releases.
func tail(text string) string {
	text, _, _ = strings.Cut(text, "\nUsage:\n")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-4):], "\n")
}
