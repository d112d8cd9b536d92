package main

import (
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
)

func renderCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "render", Usage: "print the objects that deploy would apply",
		Description: "Inspects the cluster for values that are not given. With --branch it works without a cluster; check " +
			"nodeSelector and port of the result then. Keys are redacted unless --show-secrets is given.",
		UsageText: command.Examples("pmk-sched render --offline --branch v1.24.3 --name my-scheduler --image localhost/sched:v1",
			"pmk-sched render --name my-scheduler --releases releases.yaml --helm-chart chart",
			"pmk-sched render -f pmk-sched.yaml --monitoring --to-file monitoring.yaml"),
		Flags: schedulerFlags(
			&cli.BoolFlag{Name: "offline", Usage: "do not connect to a cluster; requires --branch"},
			&cli.StringFlag{Name: "helm-chart", Usage: "write a Helm chart to `DIR`"},
			&cli.StringFlag{Name: "kustomize",
				Usage: "write a Kustomize base, and a component for each minor, to `DIR`; requires --releases"},
			&cli.StringFlag{Name: "releases",
				Usage: "write a chart or a base for all releases of `FILE`, the index of build --branches"},
			&cli.BoolFlag{Name: "monitoring",
				Usage: "print a ServiceMonitor, alerting rules and a dashboard for the scheduler instead"},
			&cli.StringFlag{Name: "for",
				Usage: "print the configuration that `AUTOSCALER` reads instead: cluster-autoscaler or karpenter"},
			toFileFlag(),
			&cli.BoolFlag{Name: "show-secrets", Usage: "print keys too, so that the output can be applied"},
			command.OutputFlag("to-file", "yaml", "json", "table")),
		Action: func(c *cli.Context) error {
			chart := c.String("helm-chart")
			for _, dir := range []string{chart, c.String("kustomize")} {
				if entries, err := os.ReadDir(dir); dir != "" && err == nil && len(entries) > 0 {
					return problem.Invalidf("", "write to %s: the directory is not empty", dir)
				}
			}
			for _, directory := range []string{"helm-chart", "kustomize"} {
				if err := exclude(c, "", directory, "monitoring", "for"); err != nil {
					return err
				}
			}
			if err := exclude(c, "", "helm-chart", "kustomize"); err != nil {
				return err
			}
			if err := exclude(c, "", "for", "monitoring", "output"); err != nil {
				return err
			}
			autoscaler, err := readAutoscaler(c, "for")
			if err != nil {
				return err
			}
			sp, err := readSpec(c, u)
			if err != nil {
				return err
			}
			if c.IsSet("releases") {
				return writeReleases(c, u, sp)
			}
			if c.IsSet("kustomize") {
				return problem.Invalidf("", "--kustomize requires --releases")
			}
			plan, err := lifecycle.Plan(c.Context, u.Session, sp, c.Bool("offline"))
			if err != nil {
				return err
			}
			if chart != "" {
				return writeChart(u, plan, chart, c.Bool("show-secrets"))
			}
			if autoscaler != "" {
				text, notes, err := deploy.RenderForAutoscaler(plan, autoscaler)
				if err != nil {
					return err
				}
				for _, note := range notes {
					u.Session.Note(note)
				}
				return u.write(c.String("to-file"), text)
			}
			var text []byte
			if c.Bool("monitoring") {
				var warnings []string
				text, warnings, err = deploy.RenderMonitoring(plan)
				u.Warn(warnings...)
			} else {
				text, err = deploy.Render(plan, c.Bool("show-secrets"))
			}
			if err != nil {
				return err
			}
			return u.objects(c.String("output"), c.String("to-file"), text)
		},
	}
}

func writeChart(u *ui, plan *deploy.Plan, dir string, secrets bool) error {
	files, warnings, err := deploy.Chart(plan, secrets)
	if err != nil {
		return err
	}
	u.Warn(warnings...)
	if err := writeFiles(dir, files); err != nil {
		return err
	}
	u.sayChart(dir, plan)
	return nil
}

// writeReleases is render --releases.
func writeReleases(c *cli.Context, u *ui, sp *spec.Spec) error {
	chart, kustomize := c.String("helm-chart"), c.String("kustomize")
	if chart == "" && kustomize == "" {
		return problem.Invalidf("", "--releases requires --helm-chart or --kustomize")
	}
	err := exclude(c, "the release index has it", "releases", "image", "branch", "preset", "config", "plugins",
		"policy-configmap", "monitoring", "credentials")
	if err != nil {
		return err
	}
	text, err := problem.ReadFile("--releases", c.String("releases"))
	if err != nil {
		return err
	}
	index, err := v1alpha1.DecodeReleases(text)
	if err == nil {
		err = index.Validate()
	}
	if err != nil {
		return problem.Invalidf("", "read %s: %w", c.String("releases"), err)
	}
	plans, err := lifecycle.PlanReleases(c.Context, u.Session, sp, index)
	if err != nil {
		return err
	}
	u.Warn(plans[0].Warnings...)
	write := deploy.ReleasesChart
	if kustomize != "" {
		write = deploy.ReleasesKustomize
	}
	files, warnings, err := write(plans, c.Bool("show-secrets"))
	if err != nil {
		return err
	}
	u.Warn(warnings...)
	if err := writeFiles(chart+kustomize, files); err != nil {
		return err
	}
	if kustomize == "" {
		u.sayChart(chart, plans[0])
		return nil
	}
	u.Say("the base and the components are in %s: the kustomization of a cluster has resources [%s] and, for its minor, "+
		"components [%s]", kustomize, filepath.Join(kustomize, "base"),
		filepath.Join(kustomize, "components", plans[len(plans)-1].Release.MinorString()))
	return nil
}

func (u *ui) sayChart(dir string, plan *deploy.Plan) {
	u.Say("the chart is in %s: `helm upgrade --install -n %s %s %s`", dir, plan.Namespace, plan.Name, dir)
}
