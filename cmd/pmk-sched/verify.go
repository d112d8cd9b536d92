package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/deploy/verify"
	"github.com/pmk-sched/pmk-sched/internal/replace"
)

func verifyCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "verify",
		Usage: "verify that a scheduler binds a pod",
		Description: "Creates a pod that names the scheduler in a temporary namespace, waits\n" +
			"until it is bound, and checks in its event that this scheduler bound it. The exit\n" +
			"status is 3 if the pod is not bound; the reason is printed.",
		UsageText: examples(
			"pmk-sched verify --name my-scheduler",
			"pmk-sched verify --default -o json",
		),
		Flags: []cli.Flag{
			nameFlag("scheduler"), fileFlag(),
			&cli.BoolFlag{Name: "default", Usage: "verify the replaced default scheduler"},
			&cli.StringFlag{Name: "image", Usage: "`REFERENCE` of the pod's image", DefaultText: "the scheduler's own"},
			timeoutFlag(time.Minute, "the pod to be bound"),
			&cli.BoolFlag{Name: "keep", Usage: "keep the pod and its namespace"},
			outputFlag(""),
		},
		Action: func(c *cli.Context) error {
			o := verify.Options{Image: c.String("image"), Timeout: c.Duration("timeout"), Keep: c.Bool("keep")}
			if c.Bool("default") {
				if c.String("name") != "" {
					return problem.Invalidf("", "--name and --default exclude each other")
				}
				v, err := replace.VerifyDefault(c.Context, u.session, o)
				if err != nil {
					return err
				}
				return u.data(c.String("output"), v, defaultVerificationTable(v))
			}
			sp, err := readName(c, u)
			if err != nil {
				return err
			}
			o.Name, o.Namespace = sp.Name, sp.Namespace
			v, err := lifecycle.Verify(c.Context, u.session, o)
			if err != nil {
				return err
			}
			return u.data(c.String("output"), v, verificationTable(v))
		},
	}
}

func verificationTable(v *verify.Result) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "scheduler\t%s\npod\t%s/%s\nnode\t%s\nbound by\t%s\ninstance\t%s\nseconds\t%.3f (%s)\n",
			v.Scheduler, v.Namespace, v.Pod, v.Node, v.BoundBy, v.Instance, v.Seconds, v.MeasuredBy)
		for _, note := range v.Notes {
			if err == nil {
				_, err = fmt.Fprintf(w, "note\t%s\n", note)
			}
		}
		return err
	}
}

func defaultVerificationTable(v *verify.DefaultResult) func(io.Writer) error {
	return func(w io.Writer) error {
		if err := verificationTable(&v.Result)(w); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w, "leader\t%s\nstatic pod\t%s\nimage\t%s\nimage ID\t%s\nreplacement\t%s\n", v.Leader, v.SchedulerPod, v.Image, v.ImageID, v.Replacement)
		for _, row := range [][2]string{{"program", strings.Join(v.Programs, ", ")}, {"build", v.Build}} {
			if row[1] != "" && err == nil {
				_, err = fmt.Fprintf(w, "%s\t%s\n", row[0], row[1])
			}
		}
		return err
	}
}
