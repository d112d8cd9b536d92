package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/replace"
	"github.com/pmk-sched/pmk-sched/internal/replace/noderun"
)

// onNodeCommand is the command for the containers in a pod on a node, see package noderun.
func onNodeCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: noderun.Command, Hidden: true, Usage: "run in a pod of `replace --all-nodes`",
		Subcommands: []*cli.Command{
			{
				Name: noderun.CopyTool, Hidden: true, ArgsUsage: "FILE", Usage: "copy this program",
				Action: func(c *cli.Context) error {
					if !c.Args().Present() {
						return problem.Invalidf("", "FILE is required")
					}
					return copySelf(c.Args().First())
				},
			},
			{
				Name: noderun.ReadImage, Hidden: true, ArgsUsage: "DIR [PROGRAM]...",
				Usage: "copy the kube-scheduler of this container's image",
				Action: func(c *cli.Context) error {
					if !c.Args().Present() {
						return problem.Invalidf("", "DIR is required")
					}
					return replace.ReadImage(os.Environ(), c.Args().First(), c.Args().Tail())
				},
			},
			{
				Name: noderun.RunRequest, Hidden: true, Usage: "do what the request asks for, and write the report",
				Action: func(c *cli.Context) error { return runRequest(c.Context, u) },
			},
		},
	}
}

func copySelf(to string) (err error) {
	in, err := os.Open("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("copy pmk-sched: %w", err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return fmt.Errorf("copy pmk-sched: %w", err)
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(0o755), out.Close())
}

// runRequest executes the pod's request. The report contains the error too, which is otherwise only
// in the pod's log.
func runRequest(ctx context.Context, u *ui) error {
	request, err := os.ReadFile(noderun.RequestFile)
	if err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	var warnings []string
	u.Session.Warn = func(text string) {
		if !slices.Contains(warnings, text) { // the files are compared, and checked again before they are changed
			warnings = append(warnings, text)
		}
		u.Warn(text)
	}
	result, failed := replace.OnNode(ctx, u.Session, request, ownVersion())
	report, err := noderun.NewReport(result, failed, warnings)
	if err != nil {
		return errors.Join(failed, err)
	}
	text, err := report.Encode()
	if err == nil {
		err = os.WriteFile(noderun.ReportFile, text, 0o600)
	}
	return errors.Join(failed, err)
}
