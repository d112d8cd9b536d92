package main

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/page"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

// withReport writes the result of a simulation to a file, which is replaced when it is complete. Only its owner may read it. A wrong path fails
// before the simulation. An empty one writes nothing.
func withReport(file string, simulate func() (*report.Report, error)) (result *report.Report, err error) {
	if file == "" {
		return simulate()
	}
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return nil, problem.Invalidf("", "write report to %s: %w", file, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
	}()
	if result, err = simulate(); err != nil {
		return nil, err
	}
	out := bufio.NewWriter(f)
	if err := errors.Join(page.Write(out, result), out.Flush(), f.Sync()); err != nil {
		return nil, err
	}
	if err := os.Rename(f.Name(), file); err != nil {
		return nil, err
	}
	return result, f.Close()
}
