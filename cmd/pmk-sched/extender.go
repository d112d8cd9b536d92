package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/extenders"
	"github.com/pmk-sched/pmk-sched/internal/install"
	"github.com/pmk-sched/pmk-sched/internal/replace"
	"github.com/pmk-sched/pmk-sched/internal/staticpod"
	"github.com/pmk-sched/pmk-sched/versions"
)

func extenderCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "extender",
		Usage: "an HTTP service that schedulers ask about each pod: deploy it and wire it into schedulers",
		Subcommands: []*cli.Command{
			extenderRenderCommand(u), extenderDeployCommand(u), extenderRestartCommand(u), extenderUninstallCommand(u),
		},
	}
}

func extenderRenderCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "render",
		Usage: "print the objects that extender deploy would apply",
		Description: "Its own objects, and those of each scheduler of --for with the extender wired in. With --branch it also works where there is\n" +
			"no cluster. Keys are left out unless --show-secrets is given.",
		Flags: append(extenderFlags(),
			&cli.StringFlag{Name: "branch", Usage: "`RELEASE` of the API server, to ask no cluster", DefaultText: "the API server's"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE`", DefaultText: "standard output"},
			&cli.BoolFlag{Name: "show-secrets", Usage: "write keys too, so that the output can be applied"}),
		Action: func(c *cli.Context) error {
			x, deps, err := planExtender(c, u)
			if err != nil {
				return err
			}
			plans, _, err := extenders.Plan(c.Context, deps, x)
			if err != nil {
				return err
			}
			var text []byte
			for i, plan := range plans {
				showNotes(u, plan)
				objects, err := install.Render(plan, c.Bool("show-secrets"))
				if err != nil {
					return err
				}
				if i > 0 {
					text = append(text, "---\n"...)
				}
				text = append(text, objects...)
			}
			if name := c.String("output"); name != "" {
				return os.WriteFile(name, text, 0o600)
			}
			_, err = u.out.Write(text)
			return err
		},
	}
}

// planExtender reads the flags, and asks the cluster for its release unless one is named: without a cluster deps are empty.
func planExtender(c *cli.Context, u *ui) (extenders.Deployment, install.Deps, error) {
	x := extenders.Deployment{For: targetsOf(c)}
	var err error
	if x.Options, err = readExtenderOptions(c); err != nil {
		return x, install.Deps{}, err
	}
	if branch := c.String("branch"); branch != "" {
		if x.Release, err = versions.Parse(branch); err == nil && (len(x.For) > 0 || x.Options.Sidecar) {
			err = usagef("leave --branch out", "without a cluster there is no scheduler to wire extender %s into", x.Options.Call.Name)
		}
		return x, install.Deps{}, err
	}
	if x.Options.Sidecar && len(x.For) == 0 {
		return x, install.Deps{}, usagef("name it with --for", "in which scheduler's pod is extender %s to run?", x.Options.Call.Name)
	}
	cfg, err := connect(c, u)
	if err != nil {
		return x, install.Deps{}, err
	}
	deps, err := newDeps(c, u, cfg)
	if err != nil {
		return x, deps, err
	}
	if x.Release, err = releaseOf(cfg); err != nil {
		return x, deps, err
	}
	return x, deps, nil
}

func showNotes(u *ui, plan *install.Plan) {
	for _, note := range plan.Notes {
		u.say("note: %s", note)
	}
	u.warn(plan.Warnings...)
}

// targetsOf are the schedulers of --for.
func targetsOf(c *cli.Context) []extenders.SchedulerRef {
	var targets []extenders.SchedulerRef
	for _, name := range c.StringSlice("for") {
		ref := extenders.SchedulerRef{Namespace: global(c, flagNamespace), Name: name}
		if namespace, bare, ok := strings.Cut(name, "/"); ok {
			ref = extenders.SchedulerRef{Namespace: namespace, Name: bare}
		}
		targets = append(targets, ref)
	}
	return targets
}

func extenderDeployCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "deploy",
		Usage: "deploy an extender, wait until it is steady, and wire it into schedulers",
		Description: "Deployment, Service, budget, certificates of an authority of its own, and what its policies may do; or, with --sidecar, in the\n" +
			"pod of each scheduler of --for. --for adds it to the configuration of a scheduler that `pmk-sched deploy` made, --default to\n" +
			"that of the default scheduler of this node (as root on a control-plane node, as `pmk-sched replace`). What fails is undone.",
		Flags: append(extenderFlags(),
			&cli.BoolFlag{Name: "default", Usage: "make the default scheduler of this node call it"},
			&cli.StringFlag{Name: "node", Usage: "`NAME` of this node, for --default", DefaultText: "found by its addresses"},
			&cli.BoolFlag{Name: "dry-run", Usage: "check everything and print what would change, but change nothing"},
			&cli.BoolFlag{Name: "no-rollback", Usage: "leave a failed deployment as it is, to look at"},
			&cli.DurationFlag{Name: "timeout", Value: defaultDeployTimeout, Usage: "give up after `DURATION` of waiting for the pods"},
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask before the default scheduler is changed"},
			outputFlag()),
		Action: func(c *cli.Context) error { return deployExtender(c, u) },
	}
}

func deployExtender(c *cli.Context, u *ui) error {
	if err := checkTimeout(c); err != nil {
		return err
	}
	x, deps, err := planExtender(c, u)
	if err != nil {
		return err
	}
	x.DeployOptions = install.DeployOptions{Timeout: c.Duration("timeout"), NoRollback: c.Bool("no-rollback")}
	var node *nodeScheduler
	if c.Bool("default") {
		if node, err = newNodeScheduler(c, u); err != nil {
			return err
		}
		x.Options.Nodes, x.Then = []string{node.name}, node.call
	}
	if c.Bool("dry-run") {
		return dryRunExtender(c, u, deps, x, node)
	}
	if node != nil {
		if err := u.confirm(c.Context, c.Bool("yes"), "make the default scheduler of this node call extender "+x.Options.Call.Name); err != nil {
			return err
		}
	}
	outcome, err := extenders.Deploy(c.Context, deps, x)
	if err != nil {
		return err
	}
	u.say("extender %s is deployed at %s; take it away with `pmk-sched extender uninstall --name %s`", outcome.Extender, outcome.Address, outcome.Extender)
	if len(outcome.Schedulers) == 0 {
		u.say("no scheduler calls it: wire it into one with --for NAME, or into the default one with --default")
	}
	return u.data(c.String("o"), outcome, extenderTable(outcome))
}

// extenderTable writes what was done with an extender for people.
func extenderTable(o *extenders.Outcome) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%sextender %s at %s, called by: %s\n", o.Changes.String(), o.Extender, o.Address, strings.Join(o.Schedulers, ", "))
		return err
	}
}

func dryRunExtender(c *cli.Context, u *ui, deps install.Deps, x extenders.Deployment, node *nodeScheduler) error {
	plans, wiring, err := extenders.Plan(c.Context, deps, x)
	if err != nil {
		return err
	}
	changes, err := extenders.DryRun(c.Context, deps, plans)
	if err != nil {
		return err
	}
	u.say("nothing was changed: this was a dry run")
	if err := u.data(c.String("o"), install.Outcome{Changes: changes}, writeText(changes.String())); err != nil || node == nil {
		return err
	}
	return node.show(c.Context, wiring)
}

// writeDiff prints how a manifest changes.
func writeDiff(w io.Writer, r *replace.Plan) error {
	return writeText(staticpod.Diff(r.Old.Data, r.New.Data))(w)
}

// releaseOf asks the API server for its release.
func releaseOf(cfg *rest.Config) (versions.Release, error) {
	version, err := serverVersion(cfg)
	if err != nil {
		return versions.Release{}, err
	}
	return versions.FromServer(version)
}
