//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/lab"
)

// defaultLabDir is short: sockets lie below it, whose paths the kernel limits to
// 107 characters.
const defaultLabDir = "/var/lib/pmk-sched/labs"

func labCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "lab",
		Usage: "a real cluster of any supported release on this machine (Linux, root)",
		Description: "A master with etcd, containerd and kubelet as processes in namespaces of their own. The machine's own network,\n" +
			"files and services are not touched, and nothing is left behind when it is taken down.",
		Subcommands: []*cli.Command{labUpCommand(u), labUpgradeCommand(u), labDownCommand(u), labStatusCommand(u), labExecCommand(u), labKubeconfigCommand(u)},
	}
}

func labFlags(more ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "name", Value: lab.DefaultName, Usage: "`NAME` of the lab"},
		&cli.StringFlag{Name: "lab-dir", Value: defaultLabDir, EnvVars: []string{"PMK_SCHED_LAB_DIR"}, Usage: "`DIR` that holds the labs"},
	}, more...)
}

func labUpCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "up",
		Usage: "bring a lab up",
		Flags: labFlags(
			&cli.StringFlag{Name: "branch", Usage: "`RELEASE` of Kubernetes, such as v1.24.3"},
			&cli.StringFlag{Name: "layout", Value: lab.LayoutPMK, Usage: "`LAYOUT` of the master's files: pmk or kubeadm"},
			&cli.IntFlag{Name: "nodes", Usage: "`NUMBER` of fake workers beside the master", DefaultText: "none"},
			&cli.BoolFlag{Name: "keep", Usage: "leave a lab that could not be brought up, to look at"},
		),
		Action: func(c *cli.Context) error {
			o, err := readLabOptions(c, u)
			if err != nil {
				return err
			}
			o.Log, o.OnStep, o.Env = u.log, u.step, os.Environ()
			l, err := lab.Up(c.Context, o)
			if err != nil {
				return err
			}
			u.say("lab %s is up; go on with `pmk-sched lab exec --name %s -- kubectl get pods -A`", l.Name(), l.Name())
			return nil
		},
	}
}

func labUpgradeCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "upgrade",
		Usage: "take a lab to another release, with all that is in it",
		Description: "The control plane first, then the node's kubelet, over the same data and with the same keys: a newer patch of its\n" +
			"minor, or the minor after it. It can be run again after it was stopped.",
		Flags: labFlags(&cli.StringFlag{Name: "branch", Usage: "`RELEASE` of Kubernetes to go to, such as v1.25.4"}),
		Action: func(c *cli.Context) error {
			o, err := readLabOptions(c, u)
			if err != nil {
				return err
			}
			o.Log, o.OnStep, o.Env = u.log, u.step, os.Environ()
			l, err := lab.Upgrade(c.Context, o)
			if err != nil {
				return err
			}
			u.say("lab %s is of %s", l.Name(), l.Release())
			return nil
		},
	}
}

// readLabOptions turns the flags of lab up and lab upgrade into options.
func readLabOptions(c *cli.Context, u *ui) (lab.Options, error) {
	branch := c.String("branch")
	if branch == "" {
		return lab.Options{}, usagef("name it with --branch v1.24.3, say", "which release of Kubernetes?")
	}
	release, err := resolveBranch(c, u, branch)
	if err != nil {
		return lab.Options{}, err
	}
	if c.Int("nodes") < 0 {
		return lab.Options{}, usagef("", "--nodes %d: it cannot be below 0", c.Int("nodes"))
	}
	dir, err := filepath.Abs(c.String("lab-dir"))
	if err != nil {
		return lab.Options{}, fmt.Errorf("find --lab-dir: %w", err)
	}
	cache, err := cacheDir(c)
	if err != nil {
		return lab.Options{}, err
	}
	return lab.Options{
		Name: c.String("name"), Release: release, Layout: c.String("layout"), Nodes: c.Int("nodes"),
		StateDir: dir, CacheDir: cache, Keep: c.Bool("keep"),
	}, nil
}

func labDownCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "down",
		Usage: "take a lab down, whatever state it is in",
		Flags: labFlags(),
		Action: func(c *cli.Context) error {
			name := c.String("name")
			return during(u, "take lab "+name+" down", func() error {
				return lab.Down(c.Context, c.String("lab-dir"), name, u.log)
			})
		},
	}
}

func labStatusCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "status",
		Usage: "tell whether a lab is there and works",
		Flags: labFlags(outputFlag()),
		Action: func(c *cli.Context) error {
			l, err := lab.Get(c.String("lab-dir"), c.String("name"))
			if err != nil {
				return err
			}
			status, err := l.Status(c.Context)
			if err != nil {
				return err
			}
			if err := u.data(c.String("o"), status, statusTable(status)); err != nil {
				return err
			}
			if status.Problem != "" {
				return &checkFailed{text: fmt.Sprintf("lab %s does not work: %s", l.Name(), status.Problem)}
			}
			return nil
		},
	}
}

func statusTable(s *lab.Status) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "lab\t%s\nlayout\t%s\nrelease\t%s\nAPI server\t%s %s\nmaster\t%s (ready: %t)\nworkers\t%d of %d ready\nkubeconfig\t%s\nnode root\t%s\n",
			s.Name, s.Layout, s.Release, s.Server, s.Version, s.Node, s.NodeReady, s.Workers.Ready, s.Workers.Total, s.Kubeconfig, s.Root)
		for _, p := range s.Processes {
			state := "not running"
			if p.PID != 0 {
				state = fmt.Sprintf("process %d", p.PID)
			}
			if err == nil {
				_, err = fmt.Fprintf(w, "%s\t%s, log %s\n", p.Name, state, p.Log)
			}
		}
		return err
	}
}

func labExecCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:      "exec",
		Usage:     "run a command as if on the master",
		ArgsUsage: "-- COMMAND ...",
		Flags:     labFlags(),
		Action: func(c *cli.Context) error {
			l, err := lab.Get(c.String("lab-dir"), c.String("name"))
			if err != nil {
				return err
			}
			status, err := l.Exec(c.Context, lab.Command{
				Argv: c.Args().Slice(), Env: os.Environ(), Stdin: u.in, Stdout: u.out, Stderr: u.err.w,
			})
			if err == nil && status != 0 {
				return &exitError{status: status}
			}
			return err
		},
	}
}

func labKubeconfigCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:        "kubeconfig",
		Usage:       "print an administrator's kubeconfig of a lab",
		Description: "It works on this machine itself. It holds a key: mind where it goes.",
		Flags:       labFlags(),
		Action: func(c *cli.Context) error {
			l, err := lab.Get(c.String("lab-dir"), c.String("name"))
			if err != nil {
				return err
			}
			text, err := os.ReadFile(l.Kubeconfig())
			if err != nil {
				return fmt.Errorf("read kubeconfig of lab %s: %w", l.Name(), err)
			}
			_, err = u.out.Write(text)
			return err
		},
	}
}
