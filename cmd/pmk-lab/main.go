//go:build linux

// Command pmk-lab runs Kubernetes clusters of any supported release on a Linux machine, for tests
// and trials of schedulers. `pmk-sched lab` runs it.
package main

import (
	"context"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
)

// version is set by the linker (-X main.version=…).
var version string

func main() {
	ctx := command.Interruptible(context.Background())
	os.Exit(newProgram(os.Stdin, os.Stdout, os.Stderr).Run(ctx, os.Args))
}

func newProgram(in io.Reader, out, errw io.Writer) *command.Program {
	u := command.NewUI(command.Version(version), in, out, errw)
	p := &command.Program{UI: u, Globals: command.MachineFlags(), App: &cli.App{
		Name: "pmk-lab", Usage: "run a cluster of any supported release on this machine (Linux, root)",
		Description: "Control-plane nodes and workers with containerd and kubelet as processes in separate namespaces. The " +
			"network, files and services of the machine are not changed, and `pmk-lab down` removes everything.\n\n" +
			"Exit status: 0 success; 1 failure; 2 usage or input error; 3 the lab does not work; `exec`: that of the command.",
		Commands: []*cli.Command{
			upCommand(u), upgradeCommand(u), downCommand(u), statusCommand(u), execCommand(u), nodeCommand(u),
			kubeconfigCommand(u), command.CompletionCommand(u, "commands, flags and releases"),
			command.VersionCommand(u, "pmk-lab"),
		},
	}}
	p.Complete()
	return p
}
