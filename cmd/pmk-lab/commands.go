//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/lab"
)

// defaultLabDir is short, since the kernel limits the paths to the sockets below it to 107
// characters.
const defaultLabDir = "/var/lib/pmk-sched/labs"

func flags(more ...cli.Flag) []cli.Flag {
	return append(command.Shared("of a lab",
		&cli.StringFlag{Name: "name", Value: lab.DefaultName, Usage: "`NAME` of the lab",
			DefaultText: "the only one, or " + lab.DefaultName},
		&cli.StringFlag{Name: "lab-dir", Value: defaultLabDir, EnvVars: []string{"PMK_SCHED_LAB_DIR"},
			Usage: "`DIR` with the labs"},
	), more...)
}

func upCommand(u *command.UI) *cli.Command {
	return &cli.Command{
		Name: "up", Usage: "create a lab",
		UsageText: command.Examples("pmk-lab up --branch v1.24.3 --masters 3",
			"pmk-lab up --branch v1.29.2 --layout kubeadm --masters 3 --workers 1 --name ha",
			"pmk-lab up --branch v1.29.2 --layout hosted --masters 2 --workers 3 --name hosted"),
		Flags: flags(
			&cli.StringFlag{Name: "branch", Usage: "`RELEASE` of Kubernetes, such as v1.24.3 or v1.24 (required)"},
			&cli.StringFlag{Name: "layout", Value: lab.LayoutPMK,
				Usage: "`LAYOUT` of the control plane: pmk, kubeadm or hosted"},
			&cli.IntFlag{Name: "masters", Value: 1, Usage: "`NUMBER` of control-plane nodes, or of hosted API servers"},
			&cli.IntFlag{Name: "workers", Usage: "`NUMBER` of workers with a kubelet, with --layout kubeadm or hosted",
				DefaultText: "none, or 2 with --layout hosted"},
			&cli.IntFlag{Name: "nodes", Usage: "`NUMBER` of simulated workers", DefaultText: "none"},
			&cli.BoolFlag{Name: "keep", Usage: "keep a lab that could not be created"},
			&cli.BoolFlag{Name: "programs-only",
				Usage: "get the programs of the lab into the cache, and create no lab"},
		),
		Action: func(c *cli.Context) error {
			o, err := readOptions(c, u)
			if err != nil {
				return err
			}
			if c.Bool("programs-only") {
				return lab.GetPrograms(c.Context, o)
			}
			u.Warn(o.Warnings()...)
			l, err := lab.Up(c.Context, o)
			if err != nil {
				return err
			}
			u.Say("lab %s is up; try `pmk-lab exec --name %s -- kubectl get pods -A`", l.Name(), l.Name())
			return nil
		},
	}
}

func upgradeCommand(u *command.UI) *cli.Command {
	return &cli.Command{
		Name: "upgrade", Usage: "upgrade a lab to another release",
		Description: "Upgrades the control plane and then the kubelet, with the same data and keys, to a newer patch of " +
			"the minor or to the next minor. It can be run again after an interruption.",
		UsageText: command.Examples("pmk-lab upgrade --branch v1.25.4",
			"pmk-lab upgrade --name kubeadm --branch v1.37.0"),
		Flags: flags(&cli.StringFlag{Name: "branch",
			Usage: "`RELEASE` of Kubernetes to upgrade to, such as v1.25.4 (required)"}),
		Action: func(c *cli.Context) error {
			o, err := readOptions(c, u)
			if err != nil {
				return err
			}
			o.Name = labName(c, u)
			l, err := lab.Upgrade(c.Context, o)
			if err != nil {
				return err
			}
			u.Say("lab %s runs %s", l.Name(), l.Release())
			return nil
		},
	}
}

// labName returns the value of --name, by default the name of the only lab there is.
func labName(c *cli.Context, u *command.UI) string {
	name := c.String("name")
	labs, err := lab.List(c.String("lab-dir"))
	if c.IsSet("name") || err != nil || len(labs) != 1 || labs[0].Name() == name {
		return name
	}
	name = labs[0].Name()
	u.Say("note: lab %s, the only one", name)
	return name
}

func readOptions(c *cli.Context, u *command.UI) (lab.Options, error) {
	branch := c.String("branch")
	if branch == "" {
		return lab.Options{}, problem.Invalidf("specify a release, for example --branch v1.24.3", "--branch is required")
	}
	release, err := pack.ResolveBranch(c.Context, u.Session, branch)
	if err != nil {
		return lab.Options{}, err
	}
	for _, flag := range []string{"masters", "workers", "nodes"} {
		if c.Int(flag) < 0 {
			return lab.Options{}, problem.Invalidf("", "invalid --%s %d: must not be negative", flag, c.Int(flag))
		}
	}
	dir, err := filepath.Abs(c.String("lab-dir"))
	if err != nil {
		return lab.Options{}, fmt.Errorf("find --lab-dir: %w", err)
	}
	return lab.Options{
		Name: c.String("name"), Release: release, Layout: c.String("layout"),
		Masters: c.Int("masters"), Workers: c.Int("workers"), Nodes: c.Int("nodes"),
		StateDir: dir, CacheDir: u.Session.CacheDir, Keep: c.Bool("keep"),
		Programs: pack.Finder(u.Session), Log: u.Log, OnStep: u.Step, Env: os.Environ(),
	}, nil
}

func downCommand(u *command.UI) *cli.Command {
	return &cli.Command{
		Name: "down", Usage: "remove a lab, in any state",
		UsageText: command.Examples("pmk-lab down", "pmk-lab down kubeadm"),
		Flags:     flags(),
		Action: func(c *cli.Context) error {
			name := labName(c, u)
			done := u.Step("remove lab " + name)
			err := lab.Down(c.Context, c.String("lab-dir"), name, u.Log)
			done(err)
			return err
		},
	}
}

func statusCommand(u *command.UI) *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "show the state of a lab",
		Description: "The exit status is 3 if the lab does not work.",
		UsageText:   command.Examples("pmk-lab status", "pmk-lab status kubeadm -o json"),
		Flags:       flags(command.OutputFlag("")),
		Action: func(c *cli.Context) error {
			l, err := lab.Get(c.String("lab-dir"), labName(c, u))
			if err != nil {
				return err
			}
			status, err := l.Status(c.Context)
			if err != nil {
				return err
			}
			if err := u.Data(c.String("output"), status, statusTable(status)); err != nil {
				return err
			}
			if status.Problem != "" {
				return command.CheckFailed("lab %s does not work: %s", l.Name(), status.Problem)
			}
			return nil
		},
	}
}

func statusTable(s *lab.Status) string {
	var p command.Printer
	p.Pairs("lab", s.Name, "layout", s.Layout, "release", s.Release, "API server", s.Server+" "+s.Version,
		"kubeconfig", s.Kubeconfig, "simulated workers", fmt.Sprintf("%d of %d ready", s.Workers.Ready, s.Workers.Total))
	printProcesses(&p, s.Processes)
	for _, n := range s.Nodes {
		state := "stopped"
		switch {
		case n.Ready:
			state = "ready"
		case n.Running:
			state = "not ready"
		}
		p.Row()
		p.Pairs("node", n.Name, "role", n.Role, "address", n.Address, "state", state, "files", n.Root)
		printProcesses(&p, n.Processes)
	}
	return p.String()
}

func printProcesses(p *command.Printer, processes []lab.Process) {
	for _, process := range processes {
		state := "not running"
		if process.PID != 0 {
			state = fmt.Sprintf("process %d", process.PID)
		}
		p.Row(process.Name, state+", log "+process.Log)
	}
}

func execCommand(u *command.UI) *cli.Command {
	return &cli.Command{
		Name: "exec", Usage: "run a command on a node of a lab",
		UsageText: command.Examples("pmk-lab exec -- kubectl get pods -A",
			"pmk-lab exec --name ha --node ha-2 -- cat /etc/kubernetes/scheduler.conf"),
		ArgsUsage: "-- COMMAND ...",
		Flags: flags(&cli.StringFlag{Name: "node", Usage: "`NAME` of the node",
			DefaultText: "the first control-plane node"}),
		Action: func(c *cli.Context) error {
			l, err := lab.Get(c.String("lab-dir"), labName(c, u))
			if err != nil {
				return err
			}
			out, errw := u.Streams()
			status, err := l.Exec(c.Context, lab.Command{
				Node: c.String("node"), Argv: c.Args().Slice(), Env: os.Environ(), Stdin: u.In, Stdout: out, Stderr: errw,
			})
			if err == nil && status != 0 {
				return &command.ExitError{Status: status}
			}
			return err
		},
	}
}

func kubeconfigCommand(u *command.UI) *cli.Command {
	return &cli.Command{
		Name: "kubeconfig", Usage: "print the administrator's kubeconfig of a lab, for this machine",
		Description: "It contains a private key.",
		UsageText:   command.Examples("pmk-lab kubeconfig", "pmk-lab kubeconfig --name kubeadm"),
		Flags:       flags(),
		Action: func(c *cli.Context) error {
			l, err := lab.Get(c.String("lab-dir"), labName(c, u))
			if err != nil {
				return err
			}
			text, err := os.ReadFile(l.Kubeconfig())
			if err != nil {
				return fmt.Errorf("read kubeconfig of lab %s: %w", l.Name(), err)
			}
			_, err = u.Out.Write(text)
			return err
		},
	}
}

func nodeCommand(u *command.UI) *cli.Command {
	change := func(name, usage string, do func(*lab.Lab, context.Context, string) error) *cli.Command {
		return &cli.Command{
			Name: name, Usage: usage, ArgsUsage: "NODE", Flags: flags(),
			UsageText: command.Examples("pmk-lab node "+name+" ha-2 --name ha",
				"pmk-lab node "+name+" ha-worker-1 --name ha"),
			Action: func(c *cli.Context) error {
				if c.NArg() != 1 {
					return problem.Invalidf("`pmk-lab status` lists the nodes",
						"expected the name of one node, got %d arguments", c.NArg())
				}
				l, err := lab.Get(c.String("lab-dir"), labName(c, u))
				if err != nil {
					return err
				}
				done := u.Step(name + " node " + c.Args().First())
				err = do(l, c.Context, c.Args().First())
				done(err)
				return err
			},
		}
	}
	return &cli.Command{
		Name: "node", Usage: "stop or start a node of a lab, or cut or restore its network",
		Subcommands: []*cli.Command{
			change("stop", "kill all processes of a node at once, as a loss of power does", (*lab.Lab).StopNode),
			change("start", "start a node that was stopped", (*lab.Lab).StartNode),
			change("cut", "disconnect a node from the network; it keeps running", (*lab.Lab).CutNode),
			change("heal", "connect a node to the network again", (*lab.Lab).HealNode),
		},
	}
}
