//go:build !linux

package main

import (
	"runtime"

	"github.com/urfave/cli/v2"
)

// labCommand answers where there can be no lab: its node is made of Linux namespaces and control groups.
func labCommand(*ui) *cli.Command {
	return &cli.Command{
		Name:            "lab",
		Usage:           "a real cluster of any supported release on this machine (Linux, root)",
		SkipFlagParsing: true,
		Action: func(*cli.Context) error {
			return usagef("run pmk-sched lab on a Linux machine", "a lab is made of Linux namespaces and control groups, which %s has not", runtime.GOOS)
		},
	}
}
