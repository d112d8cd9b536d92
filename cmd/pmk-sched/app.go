package main

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
)

// run runs the program and returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	u := newUI(stdin, stdout, stderr)
	name := "pmk-sched"
	if len(args) > 0 && strings.HasPrefix(filepath.Base(args[0]), "kubectl-") {
		name = "kubectl pmk-sched"
	}
	return newProgram(u, name).Run(ctx, args)
}

// newProgram returns the program with all its commands. name is the executable's name: the plugin
// kubectl-pmk_sched is shown as `kubectl pmk-sched`.
func newProgram(u *ui, name string) *command.Program {
	app := &cli.App{
		Name: name, Usage: "install a custom kube-scheduler on a running Kubernetes cluster",
		Description: "Inspects the cluster, builds the kube-scheduler of exactly its release, packs it on busybox, deploys " +
			"it alongside the default scheduler or in place of it, and verifies that it schedules.\n\n" +
			"Ctrl-C, SIGTERM and a closed terminal undo what is not finished; a second Ctrl-C or SIGTERM ends the undo.\n\n" +
			"Exit status: 0 success; 1 failure; 2 usage or input error; 3 check failed or drift found.",
		Commands: slices.Concat(
			command.Group("install", detectCommand(u), checkCommand(u), renderCommand(u), diffCommand(u),
				deployCommand(u), rolloutCommand(u), migrateCommand(u), verifyCommand(u), uninstallCommand(u),
				replaceCommand(u),
				restoreCommand(u), extenderCommand(u)),
			command.Group("look after", statusCommand(u), historyCommand(u), rollbackCommand(u), upgradeCommand(u),
				credentialsCommand(u),
				explainCommand(u), logsCommand(u), sysdumpCommand(u), fleetCommand(u), controllerCommand(u)),
			command.Group("foresee", snapshotCommand(u), recordCommand(u), simulateCommand(u), testCommand(u), tuneCommand(u),
				shadowCommand(u), askCommand(u),
				benchCommand(u)),
			command.Group("build", buildCommand(u), verifyImageCommand(u), bundleCommand(u), pluginCommand(u), profileCommand(u),
				schemaCommand(u)),
			command.Group("try", labCommand()),
			command.Group("",
				command.CompletionCommand(u.UI, "commands, flags, presets, releases and the names of schedulers"),
				command.VersionCommand(u.UI, "pmk-sched")),
			[]*cli.Command{onNodeCommand(u), simulateCellCommand(u), admissionCommand(u)},
		),
	}
	p := &command.Program{
		App: app, UI: u.UI, Globals: globalFlags(), Moved: moved(), Synonyms: synonyms(), Start: start(),
		Candidates: func(ctx context.Context, path, flag string) []string { return candidates(ctx, u, path, flag) },
	}
	p.Complete()
	return p
}

func start() []command.Start {
	return []command.Start{
		{Line: "pmk-sched detect", Usage: "show the cluster, its release and nodes"},
		{Line: "pmk-sched simulate pending --preset binpack", Usage: "predict it, without changes"},
		{Line: "pmk-sched deploy --name my-scheduler --preset binpack", Usage: "deploy it; a preset needs no build"},
		{Line: "pmk-sched verify my-scheduler", Usage: "let it schedule a pod"},
		{Line: "pmk-sched explain POD", Usage: "explain why a pod is pending"},
	}
}

func globalFlags() []command.GlobalFlag {
	return slices.Concat(command.ClusterFlags(), command.MachineFlags())
}
