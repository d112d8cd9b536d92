package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// labProgram is the program that runs labs. It is a separate program, since it takes a machine
// apart that only tries things out.
const labProgram = "pmk-lab"

func labCommand() *cli.Command {
	return &cli.Command{
		Name: "lab", ArgsUsage: "COMMAND ...",
		Usage:       "run a cluster of any supported release on this machine (Linux, root)",
		Description: "Runs the program pmk-lab, which is installed with pmk-sched on Linux, with the same arguments.",
		UsageText:   command.Examples("pmk-sched lab up --branch v1.24.3", "pmk-sched lab down"),

		SkipFlagParsing: true,
		Action: func(c *cli.Context) error {
			path, err := findLab()
			if err != nil {
				return err
			}
			argv := slices.Concat([]string{labProgram}, labGlobals(c), c.Args().Slice())
			return fmt.Errorf("run %s: %w", path, syscall.Exec(path, argv, os.Environ()))
		},
	}
}

// labGlobals returns the global flags before the command that pmk-lab has too.
func labGlobals(c *cli.Context) (args []string) {
	for _, flag := range command.MachineFlags() {
		if level := c.Lineage()[1]; slices.Contains(level.LocalFlagNames(), flag.Name) {
			args = append(args, "--"+flag.Name, level.String(flag.Name))
		}
	}
	return args
}

// findLab returns the path of pmk-lab: next to this program, or in a directory of PATH.
func findLab() (string, error) {
	if runtime.GOOS != "linux" {
		return "", problem.Invalidf("run pmk-sched lab on Linux",
			"a lab needs Linux namespaces and control groups, which %s does not have", runtime.GOOS)
	}
	if self, err := os.Executable(); err == nil {
		path := filepath.Join(filepath.Dir(self), labProgram)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(labProgram)
	if errors.Is(err, exec.ErrNotFound) {
		return "", problem.Invalidf("copy pmk-lab next to pmk-sched or to a directory of PATH: the packages and archives "+
			"of pmk-sched for Linux contain it, and `make build` makes both", "pmk-lab, which runs labs, is not installed")
	}
	return path, err
}
