package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/install"
)

func renderCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "render",
		Usage: "print the objects that deploy would apply",
		Description: "Asks the cluster for what is not given. With --branch it also works where there is none; then nothing is known\n" +
			"of the nodes, so look at nodeSelector and port. Keys are left out unless --show-secrets is given.",
		Flags: append(schedulerFlags(),
			&cli.BoolFlag{Name: "offline", Usage: "ask no cluster, even if there is a kubeconfig; needs --branch"},
			&cli.StringFlag{Name: "format", Value: formatYAML, Usage: "`FORMAT`: yaml, or helm for a chart"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `PATH`: a file, or the folder of the chart", DefaultText: "standard output"},
			&cli.BoolFlag{Name: "show-secrets", Usage: "write keys too, so that the output can be applied"}),
		Action: func(c *cli.Context) error {
			if err := checkFormat(c); err != nil {
				return err
			}
			o, err := readOptions(c)
			if err != nil {
				return err
			}
			plan, err := planForRender(c, u, o)
			if err != nil {
				return err
			}
			if c.String("format") == formatHelm {
				return writeChart(u, plan, c.String("output"), c.Bool("show-secrets"))
			}
			text, err := install.Render(plan, c.Bool("show-secrets"))
			if err != nil {
				return err
			}
			if name := c.String("output"); name != "" {
				return os.WriteFile(name, text, 0o600)
			}
			_, err = u.out.Write(text)
			return err
		},
	}
}

// What render can write.
const (
	formatYAML = "yaml"
	formatHelm = "helm"
)

func checkFormat(c *cli.Context) error {
	switch c.String("format") {
	case formatYAML:
		return nil
	case formatHelm:
		if c.String("output") == "" {
			return usagef("name it with -o DIR", "a chart is a folder: where is it to be?")
		}
		if entries, err := os.ReadDir(c.String("output")); err == nil && len(entries) > 0 {
			return usagef("remove it, or name another", "write a chart to %s: the folder is not empty", c.String("output"))
		}
		return nil
	}
	return usagef("use yaml or helm", "unknown --format %q", c.String("format"))
}

// writeChart writes the plan as a Helm chart.
func writeChart(u *ui, plan *install.Plan, dir string, secrets bool) error {
	files, warnings, err := install.Chart(plan, secrets)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		u.warn("%s", w)
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write the chart: %w", err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return fmt.Errorf("write the chart: %w", err)
		}
	}
	u.say("the chart is in %s: `helm upgrade --install -n %s %s %s`", dir, plan.Namespace, plan.Name, dir)
	return nil
}

// planForRender asks the cluster if there is one. That there is no kubeconfig is
// no failure when the release is named.
func planForRender(c *cli.Context, u *ui, o install.Options) (*install.Plan, error) {
	if c.Bool("offline") {
		return makeOfflinePlan(c, u, o)
	}
	cfg, err := connect(c, u)
	switch {
	case errors.Is(err, errNoKubeconfig) && o.Branch != branchAuto:
		return makeOfflinePlan(c, u, o)
	case err != nil:
		return nil, err
	}
	return makePlan(c, u, cfg, o)
}
