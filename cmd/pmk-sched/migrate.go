package main

import (
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
	"github.com/pmk-sched/pmk-sched/internal/deploy/handmade"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
)

func migrateCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "migrate", Usage: "take over a second scheduler that was set up without pmk-sched",
		Description: "Reads manifests, such as those of Platform9's article, the values of scheduler-plugins' Helm chart, or a " +
			"Deployment on the cluster, and prints what of it is kept, changed and removed, and what is left to decide (open). " +
			"--to-file writes it as pmk-sched.yaml. With --apply, the former objects are saved to a file, the scheduler is " +
			"deployed in their place, and verified; if anything fails, the former scheduler runs again. --back returns to it " +
			"later.",
		UsageText: command.Examples("pmk-sched migrate -f my-scheduler.yaml --to-file pmk-sched.yaml",
			"pmk-sched migrate --live my-scheduler --apply", "pmk-sched migrate --back -f my-scheduler-before.yaml"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "file", Aliases: []string{"f"}, Usage: "`FILE` with the manifests, or - for standard input"},
			&cli.StringFlag{Name: "live", Usage: "`NAME` of the Deployment on the cluster"},
			&cli.StringFlag{Name: "to-file", Usage: "write pmk-sched.yaml to `FILE`"},
			&cli.BoolFlag{Name: "apply", Usage: "deploy the scheduler in place of the former one"},
			&cli.StringFlag{Name: "backup", Usage: "save the former objects to `FILE`", DefaultText: "NAME-before.yaml"},
			&cli.BoolFlag{Name: "back", Usage: "remove the scheduler and create the objects of --file again"},
			timeoutFlag(defaultTimeout, "the scheduler"), stableForFlag(10 * time.Second), yesFlag(),
			command.OutputFlag("to-file"),
		},
		Action: func(c *cli.Context) error {
			if (c.String("file") == "") == (c.String("live") == "") {
				return problem.Invalidf("", "one of --file and --live is required")
			}
			for _, flag := range []string{"apply", "live", "to-file"} {
				if err := exclude(c, "", "back", flag); err != nil {
					return err
				}
			}
			return migrate(c, u)
		},
	}
}

func migrate(c *cli.Context, u *ui) error {
	found, source, err := readHandmade(c, u)
	if err != nil {
		return err
	}
	sp, err := spec.Of(nameFlags(c, u), found.Request, sourceName(c))
	if err != nil {
		return err
	}
	switch {
	case c.Bool("back"):
		return giveBack(c, u, sp, source)
	case c.Bool("apply"):
		return takeOver(c, u, sp, found)
	}
	if file := c.String("to-file"); file != "" {
		text, err := yaml.Marshal(found.Request)
		if err == nil {
			err = safeio.WriteFile(c.Context, file, 0o644, func(f *os.File) error { _, err := f.Write(text); return err })
		}
		if err != nil {
			return err
		}
		u.Say("wrote %s; next: `pmk-sched deploy -f %s --dry-run`", file, file)
	} else {
		u.Say("next: write it with --to-file pmk-sched.yaml, or deploy it with --apply")
	}
	return u.Data(c.String("output"), found, itemTable(found.Items))
}

// sourceName names what is migrated.
func sourceName(c *cli.Context) string {
	switch file := c.String("file"); file {
	case "":
		return "Deployment " + c.String("live")
	case "-":
		return "standard input"
	default:
		return file
	}
}

// readHandmade reads the scheduler from --file or --live, and the content of --file.
func readHandmade(c *cli.Context, u *ui) (*handmade.Scheduler, []byte, error) {
	if c.String("live") != "" {
		namespace := u.Namespace
		if namespace == "" {
			namespace = spec.DefaultNamespace
		}
		found, err := lifecycle.ReadHandmade(c.Context, u.Session, namespace, c.String("live"))
		return found, nil, err
	}
	text, err := readFileOrStdin(c.String("file"), u)
	if err != nil {
		return nil, nil, err
	}
	found, err := handmade.Read(sourceName(c), text)
	if err == nil && found == nil {
		err = problem.Invalidf("pass the manifests of a scheduler",
			"%s has no scheduler: neither a workload that runs kube-scheduler nor a KubeSchedulerConfiguration", sourceName(c))
	}
	return found, text, err
}

func readFileOrStdin(name string, u *ui) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(u.In)
	}
	return problem.ReadFile("--file", name)
}

func takeOver(c *cli.Context, u *ui, sp *spec.Spec, found *handmade.Scheduler) error {
	u.Say("%s", strings.TrimRight(command.Aligned(itemTable(found.Items)), "\n"))
	backup := c.String("backup")
	if backup == "" {
		backup = sp.Name + "-before.yaml"
	}
	plan, outcome, err := lifecycle.TakeOver(c.Context, u.Session, sp, found, lifecycle.TakeOverOptions{
		RunOptions: rollout(c), Backup: backup, Confirm: func(ctx context.Context, question string) error {
			return u.Confirm(ctx, c.Bool("yes"), question)
		},
	})
	if err != nil {
		return err
	}
	u.Say("scheduler %s is deployed (revision %d) and schedules; back: `pmk-sched migrate --back -f %s`", plan.Name,
		outcome.Revision, backup)
	return u.Data(c.String("output"), outcome, outcome.Changes.String())
}

func giveBack(c *cli.Context, u *ui, sp *spec.Spec, saved []byte) error {
	question := "remove scheduler " + sp.Name + " and create the objects of " + sourceName(c)
	if err := u.Confirm(c.Context, c.Bool("yes"), question); err != nil {
		return err
	}
	if err := lifecycle.GiveBack(c.Context, u.Session, sp, saved, c.Duration("timeout")); err != nil {
		return err
	}
	u.Say("the scheduler of %s runs again", sourceName(c))
	return nil
}

func itemTable(items []handmade.Item) string {
	var b strings.Builder
	b.WriteString("ACTION\tPART\tDETAIL\n")
	for _, i := range items {
		b.WriteString(string(i.Action) + "\t" + i.Subject + "\t" + i.Detail + "\n")
	}
	return b.String()
}
