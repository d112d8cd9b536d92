package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/foresight/plugintest"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
)

// pluginTestTimeout is enough for a gang that waits for its timeout.
const pluginTestTimeout = 2 * time.Minute

func pluginTestCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "test", ArgsUsage: "FILE...", Usage: "run plugins in the scheduler of any release against scenarios",
		Description: "A scenario contains the objects of a cluster and the expected result for pods: a node, or a reason " +
			"to stay pending. The scheduler is compiled with the plugins and runs on an API server without nodes. No cluster " +
			"is needed.\n\n" +
			"Exit status 3: the result of a pod differs from the expected result.",
		UsageText: examples("pmk-sched plugin test -f pmk-sched.yaml --branch v1.24.3 scenario.yaml",
			"pmk-sched plugin test --with ./quiet --branch v1.24.3 --branch v1.37.1 a.yaml b.yaml",
			"pmk-sched plugin test -f pmk-sched.yaml --branch v1.37.1 --watch scenario.yaml"),
		Flags: []cli.Flag{
			fileFlag(),
			&cli.StringSliceFlag{Name: "with", Usage: "`PLUGIN` to compile in, as in `pmk-sched build`"},
			&cli.StringSliceFlag{Name: "branch", Usage: "`RELEASE` of the scheduler", DefaultText: "the cluster's"},
			&cli.StringFlag{Name: "preset", Usage: "configuration `PRESET`, see `pmk-sched profile list`"},
			&cli.StringFlag{Name: "config", Usage: "`FILE` with a KubeSchedulerConfiguration of any version"},
			&cli.BoolFlag{Name: "lossy", Usage: "drop settings that the release does not support, with a warning for each"},
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"},
				Usage: "run again when a file of the plugins or scenarios changes, until interrupted"},
			timeoutFlag(pluginTestTimeout, "the scheduler to decide about all pods of a scenario"), outputFlag(""),
		},
		Action: func(c *cli.Context) error { return testPlugins(c, u) },
	}
}

func testPlugins(c *cli.Context, u *ui) (err error) {
	if err := checkList(c); err != nil {
		return err
	}
	servers, err := simulate.NewServers(u.session, "plugin-test")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, servers.Close()) }()
	read := func() (plugintest.Request, error) { return pluginTestRequest(c, u) }
	if c.Bool("watch") {
		return watchPlugins(c.Context, u, servers, read, c.String("file"), c.String("output"))
	}
	request, err := read()
	if err != nil {
		return err
	}
	runs, err := plugintest.Run(c.Context, u.session, servers, request)
	if err != nil {
		return err
	}
	return u.pluginTestResult(c.String("output"), runs)
}

func pluginTestRequest(c *cli.Context, u *ui) (plugintest.Request, error) {
	flags := nameFlags(c, u)
	flags.Config, flags.Preset, flags.Lossy = c.String("config"), c.String("preset"), c.Bool("lossy")
	r := plugintest.Request{Files: c.Args().Slice(), Branches: c.StringSlice("branch"), Timeout: c.Duration("timeout")}
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

// watchPlugins runs the tests after each change until it is interrupted. A failure does not end it:
// the next change may be the fix.
func watchPlugins(ctx context.Context, u *ui, servers *simulate.Servers,
	read func() (plugintest.Request, error), file, format string,
) error {
	for ctx.Err() == nil {
		request, err := read()
		watched := request.Paths()
		if file != "" {
			watched = append(watched, file)
		}
		before, stateErr := plugintest.ReadFileState(watched)
		if stateErr != nil {
			return stateErr
		}
		var runs []plugintest.Result
		if err == nil {
			runs, err = plugintest.Run(ctx, u.session, servers, request)
		}
		if err == nil {
			err = u.pluginTestResult(format, runs)
		}
		if err != nil && ctx.Err() == nil {
			u.fail(err)
		}
		u.say("waiting for changes")
		if err := plugintest.AwaitChange(ctx, watched, before); ctx.Err() == nil && err != nil {
			return err
		}
	}
	return nil // the user ends the command in this way
}

// pluginTestResult writes the results; the error names the number of expectations that are not met.
func (u *ui) pluginTestResult(format string, runs []plugintest.Result) error {
	err := u.data(format, struct {
		Runs []plugintest.Result `json:"runs"`
	}{runs}, pluginTestTable(runs))
	if err != nil {
		return err
	}
	total, unmet, seconds := 0, 0, 0.0
	for _, run := range runs {
		seconds += run.Seconds
		for _, e := range run.Expectations {
			total++
			if !e.Met {
				unmet++
			}
		}
		for _, note := range run.Notes {
			u.say("note: %s at %s: %s", run.Scenario, run.Release, note)
		}
	}
	if unmet > 0 {
		return &checkFailed{fmt.Sprintf("%d of %d expectations are not met (%.1fs)", unmet, total, seconds)}
	}
	u.say("%d of %d expectations are met (%.1fs)", total, total, seconds)
	return nil
}

func pluginTestTable(runs []plugintest.Result) string {
	var p printer
	p.row("RELEASE", "SCENARIO", "POD", "EXPECTED", "GOT", "RESULT")
	for _, run := range runs {
		for _, e := range run.Expectations {
			result := "ok"
			if !e.Met {
				result = "FAILED"
			}
			p.row(run.Release, run.Scenario, e.Pod, e.Expected, e.Got, result)
		}
	}
	return p.String()
}
