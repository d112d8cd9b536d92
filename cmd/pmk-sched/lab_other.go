//go:build !linux

package main

import (
	"context"
	"runtime"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/versions"
)

// etcdOfKubeadm returns nil: there are no labs.
func etcdOfKubeadm() func(context.Context, string, versions.Release) (string, error) { return nil }

func labCommand(*ui) *cli.Command {
	return &cli.Command{
		Name: "lab", Usage: "run a cluster of any supported release on this machine (Linux, root)",
		SkipFlagParsing: true,
		Action: func(*cli.Context) error {
			return problem.Invalidf("run pmk-sched lab on Linux",
				"a lab needs Linux namespaces and control groups, which %s does not have", runtime.GOOS)
		},
	}
}
