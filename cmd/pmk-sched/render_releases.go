package main

import (
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
)

func renderKustomizeCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "kustomize", Usage: "write a Kustomize base, and a component for each minor release",
		UsageText: command.Examples(
			"pmk-sched render kustomize --name my-scheduler --releases releases.yaml --to-dir sched",
			"pmk-sched render kustomize -f pmk-sched.yaml --releases releases.yaml --to-dir sched"),
		Flags: schedulerFlags(toDirFlag(),
			&cli.StringFlag{Name: "releases", Usage: "releases of `FILE`, the index of build --branches (required)"},
			showSecretsFlag()),
		Action: func(c *cli.Context) error {
			dir, err := readNewDir(c)
			if err != nil {
				return err
			}
			if !c.IsSet("releases") {
				return problem.Invalidf("", "--releases is required")
			}
			plans, err := writeReleases(c, u, deploy.ReleasesKustomize, dir)
			if err != nil {
				return err
			}
			u.Say("the base and the components are in %s: the kustomization of a cluster has resources [%s] and, for its minor, "+
				"components [%s]", dir, filepath.Join(dir, "base"),
				filepath.Join(dir, "components", plans[len(plans)-1].Release.MinorString()))
			return nil
		},
	}
}

// writeReleases writes the files for the releases from --releases to dir.
func writeReleases(c *cli.Context, u *ui,
	render func([]*deploy.Plan, bool) (map[string][]byte, []string, error), dir string) ([]*deploy.Plan, error) {
	plans, err := planReleases(c, u)
	if err != nil {
		return nil, err
	}
	u.Warn(plans[0].Warnings...)
	files, warnings, err := render(plans, c.Bool("show-secrets"))
	if err != nil {
		return nil, err
	}
	u.Warn(warnings...)
	return plans, writeFiles(dir, files)
}

func planReleases(c *cli.Context, u *ui) ([]*deploy.Plan, error) {
	sp, err := readSpec(c, u)
	if err != nil {
		return nil, err
	}
	err = exclude(c, "the release index has it", "releases", "image", "branch", "preset", "config", "plugins",
		"policy-configmap", "credentials")
	if err != nil {
		return nil, err
	}
	text, err := problem.ReadFile("--releases", c.String("releases"))
	if err != nil {
		return nil, err
	}
	index, err := v1alpha1.DecodeReleases(text)
	if err == nil {
		err = index.Validate()
	}
	if err != nil {
		return nil, problem.Invalidf("", "read %s: %w", c.String("releases"), err)
	}
	return lifecycle.PlanReleases(c.Context, u.Session, sp, index)
}
