package main

import (
	"errors"
	"time"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/shadow"
)

const shadowRole = "pmk-sched-shadow"

func shadowCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "shadow", Usage: "compare a scheduler's decisions with those of the live cluster",
		Description: "The scheduler runs on this machine. A proxy passes its reads to the API server and answers its " +
			"writes, so that nothing on the cluster is changed. It decides about each pod as soon as the observed scheduler " +
			"has decided. Ctrl-C ends it early.",
		UsageText: command.Examples("pmk-sched shadow --preset binpack --for 10m",
			"pmk-sched shadow -f pmk-sched.yaml --observe default-scheduler -o json",
			"pmk-sched shadow --rbac | kubectl apply -f -"),
		Flags: localSchedulerFlags("the cluster's",
			trustFlag(),
			&cli.StringFlag{Name: "observe", Value: corev1.DefaultSchedulerName, Usage: "compare with the scheduler `NAME`"},
			&cli.DurationFlag{Name: "for", Value: time.Hour, Usage: "observe for `DURATION`"},
			rbacFlag("a shadow"),
			&cli.StringSliceFlag{Name: "resource", Usage: "with --rbac: `PLURAL.GROUP` that a plugin reads"},
			command.OutputFlag(""),
		),
		Action: func(c *cli.Context) error {
			if c.Bool("rbac") {
				return u.printRole(roleFormat(c), shadowRole, c.StringSlice("resource"), "get", "list", "watch")
			}
			return runShadow(c, u)
		},
	}
}

func runShadow(c *cli.Context, u *ui) error {
	request := shadow.Request{Observed: c.String("observe"), For: c.Duration("for")}
	switch {
	case request.For <= 0:
		return problem.Invalidf("", "invalid --for %s: must be positive", request.For)
	case request.Observed == "":
		return problem.Invalidf("", "--observe is required")
	case len(c.StringSlice("resource")) > 0:
		return problem.Invalidf("", "--resource is for --rbac only")
	}
	var err error
	if request.Scheduler, err = simulatedScheduler(c, u, true); err != nil {
		return err
	}
	result, err := shadow.Run(c.Context, u.Session, request)
	if result == nil {
		return err
	}
	return errors.Join(err, u.Data(c.String("output"), result, shadowTable(result)))
}

func shadowTable(r *shadow.Report) string {
	var p printer
	duration := time.Duration(r.Seconds * float64(time.Second)).Round(time.Second)
	p.Line("%s %s compared with %s for %s", r.Scheduler, r.Release, r.Observed, duration)
	p.Line("pods: %d same, %d different, %d tied", r.Same, len(r.Differences), len(r.Noise))
	if len(r.Undecided) > 0 || r.Missed > 0 {
		p.Line("pods not compared: %d without a decision by the shadow, %d that were bound without an event",
			len(r.Undecided), r.Missed)
	}
	for _, note := range r.Notes {
		p.Row("note: " + note)
	}
	p.Head(len(r.Differences), "DIFFERENT POD", "NODE", "NODE OF "+r.Observed, "REASON")
	for _, d := range first(r.Differences) {
		p.Row(d.Namespace+"/"+d.Name, orDash(d.Node), orDash(d.Observed), orDash(oneLine(d.Reason)))
	}
	p.more(len(r.Differences))
	p.Head(len(r.Evictions), "WOULD EVICT", "FOR")
	for _, e := range first(r.Evictions) {
		p.Row(e.Namespace+"/"+e.Name, orDash(e.For))
	}
	p.more(len(r.Evictions))
	return p.String()
}
