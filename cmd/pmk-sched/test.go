package main

import (
	"context"
	"errors"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/foresight/policytest"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
)

// pluginTestTimeout is enough for a gang that waits for its timeout.
const pluginTestTimeout = 2 * time.Minute

const unmetStatus = "\n\nExit status 3: an expectation is not met."

func testCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "test", ArgsUsage: "PATH...", Usage: "test scheduling policies: expectations about a snapshot, at any release",
		Description: "PATH is a file with a SchedulingTest, or a directory with them. A test has expectations about pods, " +
			"workloads, nodes and sums after a simulation. The scheduler runs on an API server without nodes. Simulations " +
			"that several expectations need run once. The cluster is only read. With --snapshot no cluster is used." +
			unmetStatus,
		UsageText: command.Examples("pmk-sched test --snapshot cluster.tar.gz policies/",
			"pmk-sched test --snapshot a.tar.gz --branch v1.24.3 --branch v1.37.1 -o junit policies/",
			"pmk-sched test --snapshot dir/ --branch v1.24.3 --with-scheduler new.yaml --watch spread.yaml"),
		Flags: append([]cli.Flag{
			&cli.StringSliceFlag{Name: "snapshot", Usage: snapshotUsage, DefaultText: "a new one of the cluster"},
			&cli.StringFlag{Name: "with-scheduler", Value: defaultBaseline,
				Usage: "`FILE`: pmk-sched.yaml of the scheduler, or default: the default scheduler"},
			&cli.StringSliceFlag{Name: "branch", Usage: "`RELEASE` of the scheduler", DefaultText: "the release of each snapshot"},
			unknownReleaseFlag(u),
		}, testFlags(simulateTimeout)...),
		Action: func(c *cli.Context) error {
			file := c.String("with-scheduler")
			if file == defaultBaseline {
				file = ""
			}
			return runTests(c, u, file, func() (policytest.Request, error) { return policyTestRequest(c, u) })
		},
	}
}

// testFlags are the flags for commands that run tests.
func testFlags(timeout time.Duration) []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "watch", Aliases: []string{"w"},
			Usage: "run again when a file of the plugins, tests or snapshots changes, until interrupted"},
		timeoutFlag(timeout, "the scheduler to decide about all pods of a simulation"),
		command.OutputFlag("", "table", "json", "yaml", "junit"),
	}
}

// policyTestRequest reads the scheduler for `test`.
func policyTestRequest(c *cli.Context, u *ui) (r policytest.Request, err error) {
	r = testRequest(c, u)
	r.Snapshots = c.StringSlice("snapshot")
	if err := readsStdinOnce(c, "snapshot", "with-scheduler"); err != nil {
		return r, err
	}
	r.Scheduler, err = readBaseline(u, "--with-scheduler", c.String("with-scheduler"), "")
	return r, err
}

func testRequest(c *cli.Context, u *ui) policytest.Request {
	r := policytest.Request{Paths: c.Args().Slice(), Branches: c.StringSlice("branch"), Timeout: c.Duration("timeout"),
		Stdin: u.In, Version: ownVersion()}
	r.Baseline = func(source string) (pack.Scheduler, error) { return readBaseline(u, "sameAs.scheduler", source, "") }
	return r
}

func pluginTestCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "test", ArgsUsage: "PATH...", Usage: "run plugins in the scheduler of any release against tests",
		Description: "PATH is a file with a SchedulingTest, or a directory with them: the objects of a cluster, and the " +
			"expected result for pods, such as a node, or a reason to stay pending. The scheduler is compiled with the " +
			"plugins and runs on an API server without nodes. No cluster is needed." + unmetStatus,
		UsageText: command.Examples("pmk-sched plugin test -f pmk-sched.yaml --branch v1.24.3 scenario.yaml",
			"pmk-sched plugin test --with ./quiet --branch v1.24.3 --branch v1.37.1 a.yaml b.yaml",
			"pmk-sched plugin test -f pmk-sched.yaml --branch v1.37.1 --watch scenario.yaml"),
		Flags: append([]cli.Flag{
			fileFlag(),
			&cli.StringSliceFlag{Name: "with", Usage: "`PLUGIN` to compile in, as in `pmk-sched build`"},
			&cli.StringSliceFlag{Name: "branch", Usage: "`RELEASE` of the scheduler", DefaultText: "the cluster's"},
			&cli.StringFlag{Name: "preset", Usage: "configuration `PRESET`, see `pmk-sched profile list`"},
			&cli.StringFlag{Name: "config", Usage: "`FILE` with a KubeSchedulerConfiguration of any version"},
			lossyFlag(),
		}, testFlags(pluginTestTimeout)...),
		Action: func(c *cli.Context) error {
			return runTests(c, u, c.String("file"), func() (policytest.Request, error) { return pluginTestRequest(c, u) })
		},
	}
}

// pluginTestRequest reads the scheduler for `plugin test`.
func pluginTestRequest(c *cli.Context, u *ui) (policytest.Request, error) {
	flags := nameFlags(c, u)
	flags.Config, flags.Preset, flags.Lossy = c.String("config"), c.String("preset"), c.Bool("lossy")
	r := testRequest(c, u)
	sp, err := spec.Read(flags)
	if err != nil {
		return r, err
	}
	r.Scheduler, err = sp.Simulation(c.StringSlice("with"), nil)
	if err == nil && len(r.Scheduler.Plugins) == 0 {
		err = problem.Invalidf("name plugins with -f pmk-sched.yaml or --with", "no plugins to test")
	}
	return r, err
}

// runTests runs a request's tests, once or after each change. file is the scheduler's file, which
// may be empty.
func runTests(c *cli.Context, u *ui, file string, read func() (policytest.Request, error)) (err error) {
	if err := command.CheckList(c); err != nil {
		return err
	}
	servers, err := simulate.NewServers(u.Session, "test")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, servers.Close()) }()
	if c.Bool("watch") {
		return watchTests(c.Context, u, servers, read, file, c.String("output"))
	}
	request, err := read()
	if err != nil {
		return err
	}
	runs, err := policytest.Run(c.Context, u.Session, servers, request)
	if err != nil {
		return err
	}
	return u.testResult(c.String("output"), runs)
}

// watchTests runs the tests after each change until it is interrupted. A failure does not end it:
// the next change may be the fix.
func watchTests(ctx context.Context, u *ui, servers *simulate.Servers,
	read func() (policytest.Request, error), file, format string,
) error {
	for ctx.Err() == nil {
		request, err := read()
		watched := request.Watched()
		if file != "" {
			watched = append(watched, file)
		}
		before, stateErr := policytest.ReadFileState(watched)
		if stateErr != nil {
			return stateErr
		}
		var runs []policytest.Result
		if err == nil {
			runs, err = policytest.Run(ctx, u.Session, servers, request)
		}
		if err == nil {
			err = u.testResult(format, runs)
		}
		if err != nil && ctx.Err() == nil {
			u.Fail(err)
		}
		u.Say("waiting for changes")
		if err := policytest.AwaitChange(ctx, watched, before); ctx.Err() == nil && err != nil {
			return err
		}
	}
	return nil // the user ends the command in this way
}

// testResult writes the results; the error names the number of expectations that are not met.
func (u *ui) testResult(format string, runs []policytest.Result) error {
	var err error
	if format == "junit" {
		err = policytest.WriteJUnit(u.Out, runs)
	} else {
		err = u.Data(format, struct {
			Runs []policytest.Result `json:"runs"`
		}{runs}, testTable(runs))
	}
	if err != nil {
		return err
	}
	total, unmet, seconds := 0, 0, 0.0
	noted := map[string]bool{} // tests in one cluster have the same notes
	for _, run := range runs {
		seconds += run.Seconds
		for _, e := range run.Expectations {
			total++
			if !e.Met {
				unmet++
			}
		}
		for _, note := range run.Notes {
			if !noted[note] {
				u.Say("note: %s: %s", run.Title(), note)
			}
			noted[note] = true
		}
	}
	if unmet > 0 {
		return command.CheckFailed("%d of %s not met (%.1fs)", unmet,
			plural.Phrase(total, "expectation is", "expectations are"), seconds)
	}
	u.Say("%d of %s met (%.1fs)", total, plural.Phrase(total, "expectation is", "expectations are"), seconds)
	return nil
}

// testTable has a line for each expectation, which fits a terminal, and then the pods and nodes
// because of which expectations are not met, in full.
func testTable(runs []policytest.Result) string {
	var p printer
	rows := [][]string{{"RELEASE", "TEST", "EXPECTATION", "GOT", "RESULT"}}
	for _, run := range runs {
		for _, e := range run.Expectations {
			result := "ok"
			if !e.Met {
				result = "FAILED"
			}
			rows = append(rows, []string{run.Release, run.Test, oneLine(e.Name), oneLine(e.Got), result})
		}
	}
	p.fitted(rows, 1, 2, 3)
	for _, run := range runs {
		for _, e := range run.Expectations {
			if e.Met {
				continue
			}
			p.Line("\n%s: %s\n  expected %s, got %s", run.Title(), e.Name, e.Expected, oneLine(e.Got))
			for _, f := range first(e.Failures) {
				p.Line("  %s", oneLine(f.String()))
			}
			p.more(len(e.Failures))
		}
	}
	return p.String()
}
