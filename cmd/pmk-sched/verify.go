package main

import (
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/verify"
)

func verifyCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "verify",
		Usage: "prove that a scheduler schedules: it has to bind a pod",
		Description: "Creates a pod that names the scheduler, in a namespace of its own, waits until it is bound, and proves from the\n" +
			"event who bound it. Cleans up. Exit status 3 when the pod is not bound, with the reason.",
		Flags: []cli.Flag{
			nameFlag(), fileFlag(),
			&cli.BoolFlag{Name: "default", Usage: "the default scheduler, which `pmk-sched replace` replaced: the pod names no scheduler"},
			&cli.StringFlag{Name: "image", Usage: "`REFERENCE` of the pod's image", DefaultText: "the scheduler's own, which the node has"},
			&cli.DurationFlag{Name: "timeout", Value: time.Minute, Usage: "give up after `DURATION`"},
			&cli.BoolFlag{Name: "keep", Usage: "leave the pod and its namespace"},
			outputFlag(),
		},
		Action: func(c *cli.Context) error {
			if c.Bool("default") {
				return verifyReplaced(c, u)
			}
			name, namespace, err := readName(c)
			if err != nil {
				return err
			}
			if err := checkTimeout(c); err != nil {
				return err
			}
			cfg, err := connect(c, u)
			if err != nil {
				return err
			}
			v, err := verify.Scheduler(c.Context, cfg, verify.Options{
				Name: name, Namespace: namespace, Image: c.String("image"), Timeout: c.Duration("timeout"),
				Keep: c.Bool("keep"), Log: u.log, OnStep: u.step,
			})
			if err != nil {
				return err
			}
			return u.data(c.String("o"), v, verificationTable(v))
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
