//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// Command is a program that Exec runs on the node.
type Command struct {
	// Node is the node's name; the default is the first one.
	Node string
	// Argv is the program and its arguments. Exec searches the program in the lab's own programs
	// first, then in PATH of Env.
	Argv []string
	// Env is the environment. Exec sets KUBECONFIG, PMK_SCHED_NODE_ROOT, PATH and NO_PROXY.
	Env []string
	// Dir is the working directory. The default is the working directory of this process, or / if
	// the node does not have that directory.
	Dir string
	// Stdin, Stdout and Stderr are passed to the program. They may be nil.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// exitNotRunning is the status of the enter script when the lab does not run.
const exitNotRunning = 125

// Exec runs a command on a node, in its network, mount and UTS namespaces, as a cluster
// administrator, and returns its exit status. Files that it writes below /etc, /opt, /usr/libexec,
// /var/lib and /var/log are removed with the lab, except in the lab and cache directories; /run is
// the node's own. When ctx ends, so does the command. The error is about starting the command; a
// non-zero exit status is not an error.
func (l *Lab) Exec(ctx context.Context, c Command) (int, error) {
	n, err := l.Node(c.Node)
	if err != nil {
		return 0, err
	}
	if len(c.Argv) == 0 {
		return 0, problem.Invalidf("give it after --: lab exec -- kubectl get nodes", "no command to run in lab %s",
			l.Name())
	}
	path, err := n.lookPath(c.Argv[0], c.Env)
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, n.enter(), append([]string{path}, c.Argv[1:]...)...)
	cmd.Env = n.env(c.Env)
	cmd.Dir = c.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	// Ctrl-C of a terminal reaches only its foreground process group, so the command stays in ours.
	in, isFile := c.Stdin.(*os.File)
	own := !isFile || !term.IsTerminal(int(in.Fd()))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: own}
	cmd.Cancel = func() error {
		if own {
			return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		}
		return cmd.Process.Signal(syscall.SIGTERM)
	}
	cmd.WaitDelay = 10 * time.Second
	err = cmd.Run()
	if own && cmd.Process != nil && ctx.Err() != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 0, fmt.Errorf("run %s in lab %s: %w", c.Argv[0], l.Name(), ctx.Err())
	case errors.As(err, &exit) && exit.ExitCode() == exitNotRunning:
		if running, _ := n.running(); !running {
			return 0, n.notRunning()
		}
		return exit.ExitCode(), nil
	case errors.As(err, &exit):
		if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
			return 128 + int(s.Signal()), nil
		}
		return exit.ExitCode(), nil
	case err != nil:
		return 0, fmt.Errorf("run %s in lab %s: %w", c.Argv[0], l.Name(), err)
	}
	return 0, nil
}

func (l *Lab) notRunning() error {
	return problem.Errorf("take it down and create it again: pmk-lab down --name "+l.Name(),
		"lab %s is not running", l.Name())
}

// notRunning returns the error for a node that is stopped, or whose whole lab is.
func (n *Node) notRunning() error {
	if running, _ := n.lab.network().running(); !running {
		return n.lab.notRunning()
	}
	return problem.Errorf("start it with: pmk-lab node start --name "+n.lab.Name()+" "+n.name,
		"node %s of lab %s is not running", n.name, n.lab.Name())
}

// lookPath finds a program as the node's shell would.
func (n *Node) lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	if file := findProgram(n.path(env), name); file != "" {
		return file, nil
	}
	return "", problem.Invalidf("", "run %s in lab %s: program not found in %s", name, n.lab.Name(), n.path(env))
}

// path returns PATH on the node.
func (n *Node) path(env []string) string {
	if path := lookup(env, "PATH"); path != "" {
		return systemPath(n.binDir() + ":" + path)
	}
	return systemPath(n.binDir())
}

func (n *Node) env(env []string) []string {
	set := map[string]string{
		"PATH":                n.path(env),
		"PMK_SCHED_NODE_ROOT": n.Root(),
		"KUBECONFIG":          n.lab.layout().admin,
	}
	if !n.hasKubelet() {
		set["PMK_SCHED_NODE_ROOT"] = "none" // It is not a control-plane node of the cluster.
	}
	if n.role == Worker {
		set["KUBECONFIG"] = n.lab.Kubeconfig() // A worker has no administrator's kubeconfig.
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		direct := "localhost,127.0.0.1," + serviceCIDR + "," + podCIDR
		if n.lab.state.Subnet != "" {
			direct += "," + n.lab.state.Subnet
		}
		if have := lookup(env, name); have != "" {
			direct = have + "," + direct
		}
		set[name] = direct
	}
	var out []string
	for _, pair := range env {
		name, _, _ := strings.Cut(pair, "=")
		if _, ours := set[name]; !ours {
			out = append(out, pair)
		}
	}
	for _, name := range sortedKeys(set) {
		out = append(out, name+"="+set[name])
	}
	return out
}

// lookup returns a variable's value; the last occurrence wins.
func lookup(env []string, name string) string {
	value := ""
	for _, pair := range env {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			value = v
		}
	}
	return value
}
