package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// migration is a scheduler that was set up without pmk-sched, and where it was read.
type migration struct {
	found  *handmade.Scheduler
	sp     *spec.Spec
	origin string
	text   []byte // the content of --file
}

func migrate(c *cli.Context, u *ui) error {
	m, err := readMigration(c, u)
	switch {
	case err != nil:
		return err
	case c.Bool("back"):
		return m.giveBack(c, u)
	case c.Bool("apply"):
		return m.takeOver(c, u)
	}
	file, verdict := c.String("to-file"), ""
	next := "write it with --to-file pmk-sched.yaml, or deploy it with --apply"
	if file != "" {
		text, err := yaml.Marshal(m.found.Request)
		if err == nil {
			err = safeio.WriteFile(c.Context, file, 0o644, func(f *os.File) error { _, err := f.Write(text); return err })
		}
		if err != nil {
			return err
		}
		verdict, next = "wrote "+file, "`pmk-sched deploy -f "+file+" --dry-run`"
	}
	return u.Conclude(c.String("output"), m.found, itemTable(m.found.Items), verdict, next)
}

// readMigration reads the scheduler from --file or --live.
func readMigration(c *cli.Context, u *ui) (m migration, err error) {
	if name := c.String("live"); name != "" {
		m.origin = "Deployment " + name
		m.found, err = lifecycle.ReadHandmade(c.Context, u.Session, cmp.Or(u.Namespace, spec.DefaultNamespace), name)
	} else if m.text, m.origin, err = u.readDocument(c.String("file")); err == nil {
		m.found, err = handmade.Read(m.origin, m.text)
	}
	if c.Bool("back") && errors.Is(err, fs.ErrNotExist) {
		err = problem.WithHint(err, "`migrate --apply` saves the former objects when it replaces a scheduler that runs; "+
			"without a former scheduler there is no file, and `pmk-sched uninstall` removes the scheduler")
	}
	if err == nil && m.found == nil {
		err = problem.Invalidf("pass the manifests of a scheduler",
			"%s has no scheduler: neither a workload that runs kube-scheduler nor a KubeSchedulerConfiguration", m.origin)
	}
	if err == nil {
		m.sp, err = spec.OfHandmade(nameFlags(c, u), m.found, m.origin)
	}
	return m, err
}

func (m migration) takeOver(c *cli.Context, u *ui) error {
	u.Say("%s", strings.TrimRight(command.Aligned(itemTable(m.found.Items)), "\n"))
	backup := cmp.Or(c.String("backup"), m.sp.Name+"-before.yaml")
	plan, outcome, err := lifecycle.TakeOver(c.Context, u.Session, m.sp, m.found, lifecycle.TakeOverOptions{
		RunOptions: runOptions(c), Backup: backup, Confirm: func(ctx context.Context, question string) error {
			return u.Confirm(ctx, c.Bool("yes"), question)
		},
	})
	if err != nil {
		return err
	}
	next := useScheduler(plan.Name)
	if _, err := os.Stat(backup); err == nil {
		next += fmt.Sprintf("; back: `pmk-sched migrate --back -f %s`", backup)
	}
	return u.Conclude(c.String("output"), outcome, outcome.Changes.String(),
		fmt.Sprintf("scheduler %s is deployed (revision %d) and schedules", plan.Name, outcome.Revision), next)
}

func (m migration) giveBack(c *cli.Context, u *ui) error {
	question := "remove scheduler " + m.sp.Name + " and create the objects of " + m.origin
	if err := u.Confirm(c.Context, c.Bool("yes"), question); err != nil {
		return err
	}
	if err := lifecycle.GiveBack(c.Context, u.Session, m.sp, m.text, c.Duration("timeout")); err != nil {
		return err
	}
	u.Say("the scheduler of %s runs again", m.origin)
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
