package main

import (
	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/replace"
)

// upgradeFlags describe the upgrade of a scheduler.
func upgradeFlags(more ...cli.Flag) []cli.Flag {
	return append(command.Shared("of an upgrade",
		nameFlag("scheduler"), fileFlag(),
		&cli.StringFlag{Name: "branch", Aliases: []string{"to"}, Usage: "`RELEASE` to upgrade to",
			DefaultText: "the API server's"},
		&cli.StringFlag{Name: "image", Usage: "`REFERENCE` of an image of that release, which was built elsewhere",
			DefaultText: "build it"},
		requireSignatureFlag(),
		&cli.StringFlag{Name: "base", Usage: "base `IMAGE` of the image to build", DefaultText: "as before"},
		&cli.StringFlag{Name: "busybox", Usage: "`PATH` of a static busybox to use as base, without a registry",
			DefaultText: "as before"},
		lossyFlag(),
	), more...)
}

func readUpgrade(c *cli.Context, u *ui) (lifecycle.UpgradeOptions, error) {
	if err := exclude(c, "", "image", "base", "busybox"); err != nil {
		return lifecycle.UpgradeOptions{}, err
	}
	run := runOptions(c)
	if c.Bool("default") && !c.IsSet("timeout") {
		run.Timeout = replace.DefaultTimeout
	}
	if c.Bool("default") && !c.IsSet("stable-for") {
		run.StableFor = replace.DefaultStableFor
	}
	f := nameFlags(c, u)
	f.Image, f.Branch, f.Lossy = c.String("image"), c.String("branch"), c.Bool("lossy")
	f.RequireSignature = c.String("require-signature")
	sp, err := spec.Read(f)
	return lifecycle.UpgradeOptions{Spec: sp, Base: c.String("base"), Busybox: c.String("busybox"), Deploy: run}, err
}
