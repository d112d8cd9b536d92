package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/deploy/preflight"
)

func checkCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "check", Usage: "check whether the cluster accepts the scheduler: permissions, namespace, port",
		Description: "Changes nothing. Known problems of the release that affect the configuration are warnings, with the " +
			"release that fixes them. The exit status is 3 if a check fails.",
		UsageText: command.Examples("pmk-sched check -f pmk-sched.yaml",
			"pmk-sched check --name my-scheduler --image registry.example.com/kube-scheduler:v1.24.3 -o json"),
		Flags: schedulerFlags(
			&cli.StringFlag{Name: "autoscaler",
				Usage: "warn about decisions that differ from `NAME`: cluster-autoscaler or karpenter"},
			command.OutputFlag("")),
		Action: func(c *cli.Context) error {
			autoscaler, err := readAutoscaler(c, "autoscaler")
			if err != nil {
				return err
			}
			sp, err := readSpec(c, u)
			if err != nil {
				return err
			}
			outcomes, failed := lifecycle.Check(c.Context, u.Session, sp, autoscaler)
			if outcomes == nil && failed != nil {
				return failed
			}
			next := ""
			if failed == nil {
				next = "`pmk-sched deploy` with the same flags"
			}
			return errors.Join(
				u.Conclude(c.String("output"), outcomes, outcomeTable(outcomes), verdict(outcomes), next), failed)
		},
	}
}

// sections are the groups of the checks, in the order of the table.
func sections() []string {
	return []string{"CLUSTER", "PERMISSIONS", "EXTENDERS", "KNOWN PROBLEMS", "AUTOSCALER"}
}

func sectionOf(o preflight.Outcome) string {
	switch {
	case o.Name == "permission":
		return "PERMISSIONS"
	case o.Name == "extender-answers":
		return "EXTENDERS"
	case o.Name == deploy.ProblemCheck:
		return "KNOWN PROBLEMS"
	case strings.HasPrefix(o.Name, "autoscaler-"):
		return "AUTOSCALER"
	}
	return "CLUSTER"
}

func outcomeTable(outcomes []preflight.Outcome) string {
	var p printer
	for _, section := range sections() {
		found := false
		for _, o := range outcomes {
			if sectionOf(o) != section {
				continue
			}
			if !found && p.Len() > 0 {
				p.Line("")
			}
			if !found {
				p.Line("%s", section)
			}
			found = true
			p.Row(string(o.Status), o.Description, o.Detail)
		}
	}
	return p.String()
}

// verdict counts the outcomes by status.
func verdict(outcomes []preflight.Outcome) string {
	counts := map[preflight.Status]int{}
	for _, o := range outcomes {
		counts[o.Status]++
	}
	text := fmt.Sprintf("%d passed, %s, %d failed", counts[preflight.Passed],
		plural.Count(counts[preflight.Warned], "warning"), counts[preflight.Failed])
	if n := counts[preflight.Unknown]; n > 0 {
		text += fmt.Sprintf(", %d could not be checked", n)
	}
	return text
}
