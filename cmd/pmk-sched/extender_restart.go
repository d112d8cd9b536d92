package main

import (
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/apply"
	"github.com/pmk-sched/pmk-sched/internal/extenders"
	"github.com/pmk-sched/pmk-sched/internal/install"
	"github.com/pmk-sched/pmk-sched/internal/manifest"
)

func extenderRestartCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:        "restart",
		Usage:       "roll out new pods of an extender, of another image if one is named, and wait until they are steady",
		Description: "A new pod is ready before an old one ends. An image that does not become steady is taken back.",
		Flags: []cli.Flag{
			extenderNameFlag(),
			&cli.StringFlag{Name: "image", Usage: "`REFERENCE` of the image to go on with", DefaultText: "the one that it has"},
			&cli.BoolFlag{Name: "no-rollback", Usage: "leave a failed rollout as it is, to look at"},
			&cli.DurationFlag{Name: "timeout", Value: defaultDeployTimeout, Usage: "give up after `DURATION` of waiting for the pods"},
			outputFlag(),
		},
		Action: func(c *cli.Context) error {
			if err := checkExtenderName(c); err != nil {
				return err
			}
			if strings.ContainsAny(c.String("image"), " \t\n") {
				return usagef("", "image %q: a reference holds no spaces", c.String("image"))
			}
			deps, err := connectDeps(c, u)
			if err != nil {
				return err
			}
			outcome, err := extenders.Restart(c.Context, deps, extenders.RestartOptions{
				Name: c.String("name"), Namespace: global(c, flagNamespace), Image: c.String("image"), Now: time.Now(),
				DeployOptions: install.DeployOptions{Timeout: c.Duration("timeout"), NoRollback: c.Bool("no-rollback")},
			})
			if err != nil {
				return err
			}
			u.say("extender %s runs anew and is steady", outcome.Extender)
			return u.data(c.String("o"), outcome, writeText(outcome.Changes.String()))
		},
	}
}

func extenderUninstallCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "uninstall",
		Usage: "take an extender out of every scheduler that calls it, and remove everything that was made for it",
		Description: "The configuration of each scheduler is then what it was before. Where the default scheduler calls it, run it as root on that node;\n" +
			"on several, on each: the objects go with the last.",
		Flags: []cli.Flag{
			extenderNameFlag(),
			&cli.StringFlag{Name: "node", Usage: "`NAME` of this node, where its default scheduler calls the extender", DefaultText: "found by its addresses"},
			&cli.DurationFlag{Name: "timeout", Value: defaultDeployTimeout, Usage: "give up after `DURATION` of waiting for the pods"},
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
			outputFlag(),
		},
		Action: func(c *cli.Context) error { return uninstallExtender(c, u) },
	}
}

func uninstallExtender(c *cli.Context, u *ui) error {
	if err := checkExtenderName(c); err != nil {
		return err
	}
	deps, err := connectDeps(c, u)
	if err != nil {
		return err
	}
	name, namespace := c.String("name"), global(c, flagNamespace)
	if err := u.confirm(c.Context, c.Bool("yes"), "remove extender "+name); err != nil {
		return err
	}
	x := extenders.UninstallOptions{Name: name, Namespace: namespace, DeployOptions: install.DeployOptions{Timeout: c.Duration("timeout")}}
	owned, err := deps.Applier.Owned(c.Context, name, namespace)
	if err != nil {
		return err
	}
	if len(extenders.NodesCalling(owned)) > 0 {
		node, err := newNodeScheduler(c, u)
		if err != nil {
			return err
		}
		x.Node, x.Default = node.name, node.leave(name)
	}
	changes, err := extenders.Uninstall(c.Context, deps, x)
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		changes = apply.ChangeSet{} // a list in JSON too
		u.say("nothing of an extender %s was found", name)
	}
	return u.data(c.String("o"), changes, writeText(changes.String()))
}

func extenderNameFlag() cli.Flag {
	return &cli.StringFlag{Name: "name", Usage: "`NAME` of the extender"}
}

func checkExtenderName(c *cli.Context) error {
	if c.String("name") == "" {
		return usagef("name it with --name", "which extender?")
	}
	if err := manifest.ValidateName(c.String("name")); err != nil {
		return err
	}
	return checkTimeout(c)
}

func connectDeps(c *cli.Context, u *ui) (install.Deps, error) {
	cfg, err := connect(c, u)
	if err != nil {
		return install.Deps{}, err
	}
	return newDeps(c, u, cfg)
}
