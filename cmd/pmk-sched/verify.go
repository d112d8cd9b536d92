package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/deploy/verify"
	"github.com/pmk-sched/pmk-sched/internal/replace"
)

func verifyCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "verify", Usage: "verify that a scheduler binds a pod",
		Description: "Creates a pod that names the scheduler in a temporary namespace, waits until it is bound, and checks " +
			"in its event that this scheduler bound it. The exit status is 3 if the pod is not bound; the reason is printed.",
		UsageText: command.Examples("pmk-sched verify --name my-scheduler", "pmk-sched verify --default -o json"),
		Flags: []cli.Flag{
			nameFlag("scheduler"), fileFlag(),
			&cli.BoolFlag{Name: "default", Usage: "verify the replaced default scheduler"},
			&cli.StringFlag{Name: "image", Usage: "`REFERENCE` of the pod's image", DefaultText: "the scheduler's own"},
			timeoutFlag(time.Minute, "the pod to be bound"),
			&cli.BoolFlag{Name: "keep", Usage: "keep the pod and its namespace"},
			command.OutputFlag(""),
		},
		Action: func(c *cli.Context) error {
			o := verify.Options{Image: c.String("image"), Timeout: c.Duration("timeout"), Keep: c.Bool("keep")}
			if c.Bool("default") {
				if err := exclude(c, "", "name", "default"); err != nil {
					return err
				}
				v, err := replace.VerifyDefault(c.Context, u.Session, o)
				if err != nil {
					return err
				}
				return u.Conclude(c.String("output"), v, defaultVerificationTable(v), "the default scheduler binds pods", "")
			}
			sp, err := readName(c, u)
			if err != nil {
				return err
			}
			o.Name, o.Namespace = sp.Name, sp.Namespace
			v, err := lifecycle.Verify(c.Context, u.Session, o)
			if err != nil {
				return err
			}
			return u.Conclude(c.String("output"), v, verificationTable(v), "scheduler "+v.Scheduler+" binds pods",
				useScheduler(v.Scheduler))
		},
	}
}

func verificationTable(v *verify.Result) string {
	var p printer
	p.Pairs("scheduler", v.Scheduler, "pod", v.Namespace+"/"+v.Pod, "node", v.Node, "bound by", v.BoundBy,
		"instance", v.Instance, "seconds", fmt.Sprintf("%.3f (%s)", v.Seconds, v.MeasuredBy))
	for _, note := range v.Notes {
		p.Row("note", note)
	}
	return p.String()
}

func defaultVerificationTable(v *verify.DefaultResult) string {
	var p printer
	p.WriteString(verificationTable(&v.Result))
	p.Pairs("leader", v.Leader, "static pod", v.SchedulerPod, "image", v.Image, "image ID", v.ImageID,
		"replacement", v.Replacement)
	p.Facts("program", strings.Join(v.Programs, ", "), "build", v.Build)
	return p.String()
}
