package main

import (
	"cmp"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/replace"
)

func extenderRestartCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "restart", Usage: "roll out new pods of an extender, with another image if one is given",
		Description: "A new pod is ready before an old one ends. A rollout that does not become ready is undone.",
		UsageText: examples("pmk-sched extender restart --name my-extender",
			"pmk-sched extender restart --name my-extender --image registry.example.com/pmk-extender:v2"),
		Flags: []cli.Flag{
			nameFlag("extender"),
			&cli.StringFlag{Name: "image", Usage: "`REFERENCE` of the new image", DefaultText: "the current image"},
			&cli.BoolFlag{Name: "no-rollback", Usage: "do not undo a failed rollout"},
			timeoutFlag(defaultTimeout, "the pods"), extenderStableForFlag(), outputFlag(""),
		},
		Action: func(c *cli.Context) error {
			name, image := c.String("name"), c.String("image")
			if err := checkExtenderName(name); err != nil {
				return err
			}
			if strings.ContainsAny(image, " \t\n") {
				return problem.Invalidf("", "invalid --image %q: must not contain spaces", image)
			}
			outcome, err := lifecycle.RestartExtender(c.Context, u.session, extenders.RestartOptions{
				Name: name, Namespace: cmp.Or(u.namespace, spec.DefaultNamespace), Image: image, RunOptions: rollout(c),
			})
			if err != nil {
				return err
			}
			u.say("extender %s is restarted and ready", outcome.Extender)
			return u.data(c.String("output"), outcome, outcome.Changes.String())
		},
	}
}

func extenderUninstallCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "uninstall", Usage: "remove an extender from the schedulers that call it, and delete it",
		Description: "Removes the extender from the configuration of each scheduler. If the default schedulers of nodes " +
			"call it, run the command as root on each of these nodes: the last run deletes the objects.",
		UsageText: examples("pmk-sched extender uninstall --name my-extender",
			"pmk-sched extender uninstall --name my-extender --yes -o json"),
		Flags: []cli.Flag{
			nameFlag("extender"),
			&cli.StringFlag{Name: "node", Usage: "`NAME` of this node, if its default scheduler calls the extender", DefaultText: "found by its addresses"},
			timeoutFlag(defaultTimeout, "the pods"), extenderStableForFlag(), yesFlag(), outputFlag(""),
		},
		Action: func(c *cli.Context) error {
			name := c.String("name")
			if err := checkExtenderName(name); err != nil {
				return err
			}
			if _, err := u.session.Connect(); err != nil {
				return err
			}
			if err := u.confirm(c.Context, c.Bool("yes"), "remove extender "+name); err != nil {
				return err
			}
			changes, err := replace.UninstallExtender(c.Context, u.session, extenders.UninstallOptions{
				Name: name, Namespace: cmp.Or(u.namespace, spec.DefaultNamespace), RunOptions: rollout(c),
			}, c.String("node"))
			if err != nil {
				return err
			}
			if len(changes) == 0 {
				changes = apply.ChangeSet{} // a list in JSON too
				u.say("extender %s was not found", name)
			}
			return u.data(c.String("output"), changes, changes.String())
		},
	}
}

func checkExtenderName(name string) error {
	if name == "" {
		return problem.Invalidf("", "--name is required")
	}
	return manifest.ValidateName(name)
}
