package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/foresight/ask"
)

func renderCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "render", Usage: "print the objects that deploy would apply",
		Description: "Inspects the cluster for values that are not given. With --branch it works without a cluster; check " +
			"nodeSelector and port of the result then. Keys are redacted unless --show-secrets is given.",
		UsageText: command.Examples("pmk-sched render -f pmk-sched.yaml",
			"pmk-sched render --offline --branch v1.24.3 --name my-scheduler --image localhost/sched:v1"),
		Flags: schedulerFlags(offlineFlag(), toFileFlag(), showSecretsFlag(),
			command.OutputFlag("to-file", "yaml", "json", "table")),
		Subcommands: []*cli.Command{
			renderChartCommand(u), renderKustomizeCommand(u), renderMonitoringCommand(u), renderAutoscalerCommand(u),
			renderAskCommand(u),
		},
		Action: func(c *cli.Context) error {
			plan, err := readPlan(c, u)
			if err != nil {
				return err
			}
			text, err := deploy.Render(plan, c.Bool("show-secrets"))
			if err != nil {
				return err
			}
			return u.objects(c.String("output"), c.String("to-file"), text)
		},
	}
}

func renderChartCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "chart", Usage: "write a Helm chart of the scheduler",
		UsageText: command.Examples("pmk-sched render chart -f pmk-sched.yaml --branch v1.24.3 --to-dir chart",
			"pmk-sched render chart --name my-scheduler --releases releases.yaml --to-dir chart"),
		Flags: schedulerFlags(offlineFlag(), toDirFlag(),
			&cli.StringFlag{Name: "releases",
				Usage: "write a chart for all releases of `FILE`, the index of build --branches", DefaultText: "one release"},
			showSecretsFlag()),
		Action: func(c *cli.Context) error {
			dir, err := readNewDir(c)
			if err != nil {
				return err
			}
			if c.IsSet("releases") {
				plans, err := writeReleases(c, u, deploy.ReleasesChart, dir)
				if err == nil {
					u.sayChart(dir, plans[0])
				}
				return err
			}
			plan, err := readPlan(c, u)
			if err != nil {
				return err
			}
			files, warnings, err := deploy.Chart(plan, c.Bool("show-secrets"))
			if err != nil {
				return err
			}
			u.Warn(warnings...)
			if err := writeFiles(dir, files); err != nil {
				return err
			}
			u.sayChart(dir, plan)
			return nil
		},
	}
}

func (u *ui) sayChart(dir string, plan *deploy.Plan) {
	u.Say("the chart is in %s: `helm upgrade --install -n %s %s %s`", dir, plan.Namespace, plan.Name, dir)
}

func renderMonitoringCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "monitoring", Usage: "print a ServiceMonitor, alerting rules and a dashboard",
		UsageText: command.Examples("pmk-sched render monitoring -f pmk-sched.yaml --to-file monitoring.yaml",
			"pmk-sched render monitoring --name my-scheduler | kubectl apply -f -"),
		Flags: schedulerFlags(offlineFlag(), toFileFlag(), command.OutputFlag("to-file", "yaml", "json", "table")),
		Action: func(c *cli.Context) error {
			plan, err := readPlan(c, u)
			if err != nil {
				return err
			}
			text, warnings, err := deploy.RenderMonitoring(plan)
			u.Warn(warnings...)
			if err != nil {
				return err
			}
			return u.objects(c.String("output"), c.String("to-file"), text)
		},
	}
}

func renderAutoscalerCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "autoscaler", Usage: "print the configuration that an autoscaler reads",
		UsageText: command.Examples("pmk-sched render autoscaler --for cluster-autoscaler -f pmk-sched.yaml",
			"pmk-sched render autoscaler --for karpenter -f pmk-sched.yaml --to-file values.yaml"),
		Flags: schedulerFlags(
			&cli.StringFlag{Name: "for", Usage: "`AUTOSCALER`: cluster-autoscaler or karpenter (required)"},
			offlineFlag(), toFileFlag()),
		Action: func(c *cli.Context) error {
			autoscaler, err := readAutoscaler(c, "for")
			if err == nil && autoscaler == "" {
				err = problem.Invalidf("", "--for is required")
			}
			if err != nil {
				return err
			}
			plan, err := readPlan(c, u)
			if err != nil {
				return err
			}
			text, notes, err := deploy.RenderForAutoscaler(plan, autoscaler)
			if err != nil {
				return err
			}
			for _, note := range notes {
				u.Session.Note(note)
			}
			return u.write(c.String("to-file"), text)
		},
	}
}

func renderAskCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "ask", Usage: "print the objects of a server that answers questions about the scheduler",
		Description: "Prints the ServiceAccount, its permissions to read, and the Deployment of `pmk-sched ask serve` with the " +
			"program of the scheduler's image, which `pmk-sched build` has made. It serves HTTPS with the Secret " +
			"NAME-ask-tls, and requires the token in the Secret NAME-ask-token.",
		UsageText: command.Examples(
			"pmk-sched render ask -f pmk-sched.yaml --server-image r.example.com/pmk:v1 --to-file a.yaml",
			"pmk-sched render ask -f pmk-sched.yaml --branch v1.24.3 --offline --server-image localhost/self:v1"),
		Flags: schedulerFlags(
			&cli.StringFlag{Name: "server-image", Usage: "`REFERENCE` of an image with pmk-sched (required)"},
			offlineFlag(), toFileFlag(), command.OutputFlag("to-file", "yaml", "json", "table")),
		Action: func(c *cli.Context) error {
			server := c.String("server-image")
			if server == "" {
				return problem.Invalidf("an image with pmk-sched is part of each release of pmk-sched", "--server-image is required")
			}
			plan, err := readPlan(c, u)
			if err != nil {
				return err
			}
			s := plan.Scheduler
			objects, err := ask.Objects(ask.ManifestOptions{
				Name: plan.Name, Namespace: plan.Namespace, Release: plan.Release, Image: s.Image, Server: server,
				Configuration: s.Configuration.YAML, Args: slices.Concat(s.Configuration.Args, s.Args), Rules: s.PluginRules,
			})
			if err != nil {
				return err
			}
			return u.rendered(c, objects)
		},
	}
}
