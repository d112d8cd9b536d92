package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
	"github.com/pmk-sched/pmk-sched/internal/foresight/page"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

// simulateSteps runs steps whose files are relative to dir.
// checkNext is the next step once a scheduler's simulation is as wanted.
const checkNext = "`pmk-sched check` with the same --file, --preset or --config"

func simulateSteps(c *cli.Context, u *ui, dir string, steps ...scenario.Step) error {
	r := simulate.Request{Script: simulate.Script{Steps: steps, Dir: dir, Stdin: u.In}}
	var against []string
	if source := c.String("against"); source != "" {
		against = []string{source}
	}
	var err error
	if r.Input, err = readInput(c, u, against...); err != nil {
		return err
	}
	if r.Prices, err = readPrices(c); err != nil {
		return err
	}
	result, err := withReport(c.Context, c.String("report"), page.Write, func() (*report.Report, error) {
		return simulate.Simulate(c.Context, u.Session, r)
	})
	if err != nil {
		return err
	}
	return u.Conclude(c.String("output"), result, simulationTable(result), "", checkNext)
}

// withReport writes a result's page to a file, which is replaced when it is complete. Only its
// owner may read it. A wrong path fails before the simulation. An empty one writes nothing.
func withReport[T any](
	ctx context.Context, file string, write func(io.Writer, *T) error, run func() (*T, error),
) (result *T, err error) {
	if file == "" {
		return run()
	}
	err = safeio.WriteFile(ctx, file, 0o600, func(f *os.File) error {
		if result, err = run(); err != nil {
			return err
		}
		out := bufio.NewWriter(f)
		return errors.Join(write(out, result), out.Flush())
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}
