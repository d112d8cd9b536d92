package kubescheduler

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/pmk-sched/pmk-sched/internal/artifact/sandbox"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/apiserver"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Process is a kube-scheduler that was started. Its metrics are served on loopback, without
// authentication.
type Process struct {
	*apiserver.Process
	MetricsURL string
	// Profiles are its profiles' names, and Notes the differences from the scheduler that a deployment
	// runs.
	Profiles, Notes []string
	// Release is the scheduler's release, which names its metrics.
	Release versions.Release
	client  http.Client
	// sandbox is the service in which the scheduler runs. It is nil if it runs as the user.
	sandbox *sandbox.Service
}

// Kill ends the scheduler at once and returns when it is gone.
func (p *Process) Kill() error {
	err := p.Process.Kill()
	if p.sandbox != nil {
		err = errors.Join(err, p.sandbox.Close())
	}
	return err
}

// Names for a scheduler's files.
const (
	configurationFile = "scheduler.yaml"
	outputFile        = "output" // the name of sandbox.OutputPath
	logFile           = "kube-scheduler.log"
)

// Start starts the scheduler with a kubeconfig, after change has changed its configuration. The
// configuration and the log are in dir, which is private. A scheduler with code that a cluster has
// recorded runs in a sandbox, in which it reaches the kubeconfig's address and nothing else.
func (s *Scheduler) Start(
	ctx context.Context, on *session.Session, dir, kubeconfig string, change func(*Configuration) error,
) (*Process, error) {
	address, err := apiserver.FreeAddress()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("start the scheduler: %w", err)
	}
	insecure, err := apiserver.FreePort()
	if err != nil {
		return nil, err
	}
	configuration, err := s.Configure(on, s.path(dir, kubeconfig), insecure)
	if err != nil {
		return nil, err
	}
	if err := change(configuration); err != nil {
		return nil, err
	}
	isolated := s.Request.Recorded
	if err := configuration.askExtenders(ctx, isolated); err != nil {
		return nil, err
	}
	if isolated {
		configuration.Notes = append(configuration.Notes, "the scheduler ran in a sandbox, because the cluster recorded its "+
			"plugins: they reached nothing but the simulation")
	}
	args := append([]string{
		"--bind-address=" + host, "--secure-port=" + port,
		"--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics", "--v=2",
	}, configuration.Args...)
	p, err := s.execute(ctx, dir, filepath.Join(dir, logFile), kubeconfig, configuration, args)
	if err != nil {
		return nil, err
	}
	p.MetricsURL, p.Profiles, p.Notes = "https://"+address+"/metrics", configuration.Profiles, configuration.Notes
	return p, nil
}

// path returns the path by which the scheduler sees a file in dir: in a sandbox the file is in its
// root directory.
func (s *Scheduler) path(dir, file string) string {
	if s.Request.Recorded {
		return sandbox.Path(filepath.Base(file))
	}
	return filepath.Join(dir, filepath.Base(file))
}

// execute starts the program with a configuration, which it writes to dir, and flags. Nothing else
// starts it: code that a cluster has recorded runs in a sandbox only.
func (s *Scheduler) execute(
	ctx context.Context, dir, log, kubeconfig string, c *Configuration, args []string,
) (*Process, error) {
	args = append([]string{"--config=" + s.path(dir, configurationFile)}, args...)
	if s.Request.Recorded {
		return s.isolate(ctx, dir, log, kubeconfig, c, args)
	}
	if err := os.WriteFile(filepath.Join(dir, configurationFile), c.YAML, 0o600); err != nil {
		return nil, fmt.Errorf("write configuration of the scheduler: %w", err)
	}
	process, err := apiserver.StartProcess(log, s.Program, args...)
	return newProcess(s.Release, process, (&net.Dialer{}).DialContext), err
}

// isolate starts the program in a sandbox.
func (s *Scheduler) isolate(
	ctx context.Context, dir, log, kubeconfig string, c *Configuration, args []string,
) (*Process, error) {
	text, server, err := portable(kubeconfig)
	if err != nil {
		return nil, err
	}
	program := sandbox.Program{Path: s.Program, Args: args,
		Files: map[string][]byte{configurationFile: c.YAML, filepath.Base(kubeconfig): text}}
	var process *apiserver.Process
	isolated, err := sandbox.Start(ctx, dir, program, append([]string{server}, c.Services...),
		func(cmd *exec.Cmd) (err error) {
			process, err = apiserver.StartCommand(log, cmd)
			return err
		})
	if err != nil {
		if process != nil {
			err = errors.Join(err, process.Kill())
		}
		return nil, problem.WithHint(fmt.Errorf("run kube-scheduler with the plugins that the cluster recorded: %w", err),
			"or name the scheduler with -f pmk-sched.yaml, so that its plugins run as you")
	}
	p := newProcess(s.Release, process, func(ctx context.Context, _, address string) (net.Conn, error) {
		return isolated.Dial(ctx, address)
	})
	p.sandbox = isolated
	return p, nil
}

// newProcess returns a process whose metrics are read by connections from dial.
func newProcess(
	release versions.Release, process *apiserver.Process,
	dial func(ctx context.Context, network, address string) (net.Conn, error),
) *Process {
	return &Process{Process: process, Release: release, client: http.Client{
		Timeout: 10 * time.Second, Transport: &http.Transport{
			DialContext:     dial,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // a certificate that the scheduler has just made, on loopback
		},
	}}
}

// output returns the content in the file outputFile in dir, which the scheduler has written.
func (p *Process) output(dir string) ([]byte, error) {
	if p.sandbox != nil {
		return p.sandbox.Output()
	}
	return os.ReadFile(filepath.Join(dir, outputFile))
}

// portable returns a kubeconfig that names no file, and its server's address.
func portable(kubeconfig string) (text []byte, server string, err error) {
	read, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return nil, "", fmt.Errorf("read kubeconfig of the scheduler: %w", err)
	}
	if err := clientcmdapi.FlattenConfig(read); err != nil {
		return nil, "", fmt.Errorf("read kubeconfig of the scheduler: %w", err)
	}
	for _, cluster := range read.Clusters { // it has one
		at, err := url.Parse(cluster.Server)
		if err != nil {
			return nil, "", fmt.Errorf("read kubeconfig of the scheduler: %w", err)
		}
		server = at.Host
	}
	text, err = clientcmd.Write(*read)
	return text, server, err
}
