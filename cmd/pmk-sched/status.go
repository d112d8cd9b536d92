package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
	"github.com/pmk-sched/pmk-sched/internal/replace"
)

func statusCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "show the schedulers and extenders managed by pmk-sched, and detect problems",
		Description: "Shows for each scheduler and extender: differences of its objects from the newest revision, and who " +
			"made them; replicas and their nodes; the leader lease; its release and the release of the cluster; credentials; " +
			"pending pods of the scheduler; scheduling attempts and latency; the last warnings. On a control-plane node it " +
			"compares the files of the default scheduler with the files that replace wrote. The exit status is 3 if there are " +
			"findings; docs/operations.md lists them. Changes nothing: objects are compared by a dry run of the API server.",
		UsageText: command.Examples("pmk-sched status", "pmk-sched status --name my-scheduler --watch", "pmk-sched status -o json"),
		Flags: []cli.Flag{
			nameFlag("scheduler or extender"),
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"},
				Usage: "print again when something has changed, until interrupted"},
			command.OutputFlag(""),
		},
		Action: func(c *cli.Context) error {
			read := func(ctx context.Context) (*replace.Status, error) {
				return replace.ReadStatus(ctx, u.Session, c.String("name"), u.Namespace)
			}
			if c.Bool("watch") {
				return watchStatus(c.Context, u, c.String("output"), statusInterval, read)
			}
			status, err := read(c.Context)
			if status == nil || problem.IsInvalid(err) {
				return err
			}
			u.Warn(status.Unknown...)
			verdict := ""
			if err == nil {
				verdict = "no findings"
			}
			return errors.Join(u.Conclude(c.String("output"), status, statusText(status), verdict, ""), err)
		},
	}
}

const statusInterval = 5 * time.Second

// watchStatus prints the status when it has changed, until ctx ends, which is not an error. Only
// the first reading has to succeed.
func watchStatus(ctx context.Context, u *ui, format string, interval time.Duration,
	read func(context.Context) (*replace.Status, error)) error {
	shown := ""
	for {
		status, err := read(ctx)
		var findings *health.FindingsError
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the user ends it that way
		case err != nil && !errors.As(err, &findings):
			if shown == "" {
				return err
			}
			u.Warn(err.Error())
		default:
			text := statusText(status) + findingsText(status.Findings)
			if text == shown {
				break
			}
			shown = text
			u.Warn(status.Unknown...)
			if format == "table" {
				if err := u.Out.NextPage("at " + time.Now().UTC().Format(time.RFC3339)); err != nil {
					return err
				}
			}
			if err := u.Data(format, status, text); err != nil {
				return err
			}
		}
		if clock.Sleep(ctx, interval) != nil {
			return nil //nolint:nilerr // the user ends it that way
		}
	}
}

// statusText is the status as tables, followed by the details of each scheduler and extender.
func statusText(s *replace.Status) string {
	var p printer
	p.Head(len(s.Nodes), "NODE", "REPLACED", "READY", "LEADER", "IMAGE")
	for _, n := range s.Nodes {
		p.Row(n.Node, n.Replaced, n.Ready, n.Leads, shortReference(n.Image))
	}
	if h := s.Here; h != nil {
		state := "unchanged"
		if len(h.Drift) > 0 {
			state = "changed since"
		}
		here := fmt.Sprintf("%s, %s since %s, %s", h.Node, h.State, h.Since.Format(time.RFC3339), state)
		p.WriteString("\n" + paragraph("this node", here) + paragraph("backup", h.Backup))
	}
	p.workloads("SCHEDULER", s.Schedulers, s.Findings)
	p.workloads("EXTENDER", s.Extenders, s.Findings)
	for _, w := range slices.Concat(s.Schedulers, s.Extenders) {
		p.WriteString("\n" + w.String() + "\n" + details(w))
	}
	if a := s.Arbiter; a != nil {
		p.WriteString("\narbiter in namespace " + a.Namespace + "\n" + paragraph("webhook", arbiterText(a)) +
			leaseParagraph(a.Lease))
	}
	p.Line("\n%s to the API server%s", plural.Count(int(s.Requests), "request"), prefixed(" ", s.Server))
	return strings.TrimPrefix(p.String(), "\n")
}

func (p *printer) workloads(title string, list []*health.Workload, findings []health.Finding) {
	p.Head(len(list), title, "NAMESPACE", "READY", "RELEASE", "REVISION", "EXPIRES", "FINDINGS")
	for _, w := range list {
		revision, expires := "-", "-"
		if w.Revision > 0 {
			revision = strconv.Itoa(w.Revision)
		}
		if w.Certificate != nil {
			expires = w.Certificate.Expires.Format(time.DateOnly)
		}
		ready := fmt.Sprintf("%d/%d", w.Ready, w.Wanted)
		p.Row(w.Name, w.Namespace, ready, orDash(w.Release), revision, expires, codesOf(w, findings))
	}
}

func details(w *health.Workload) string {
	var b strings.Builder
	fact := func(name, text string) {
		if text != "" {
			b.WriteString(paragraph(name, text))
		}
	}
	fact("image", shortReference(w.Image))
	for _, r := range w.Replicas {
		fact("replica", replicaText(r))
	}
	b.WriteString(leaseParagraph(w.Lease))
	if c := w.Credentials; c != nil {
		expires := ""
		if c.Expires != nil {
			expires = "expires " + instant(*c.Expires)
		}
		fact("credentials", joinNonEmpty(c.Mode, c.Subject, expires))
	}
	if p := w.Waiting; p != nil && p.Pods == 0 {
		fact("waiting", "no pods")
	} else if p != nil {
		fact("waiting", fmt.Sprintf("%s, the oldest, %s, since %s; %d of them not reported on by the scheduler",
			plural.Count(p.Pods, "pod"), p.Oldest, instant(p.Since), p.Ignored))
	}
	fact("route", routeText(w.Route))
	fact("rollout", rolloutText(w.Route))
	fact("scheduling", schedulingText(w.Scheduling))
	fact("extenders", strings.Join(w.Calls, ", "))
	if s := w.Service; s != nil && s.Exists {
		fact("endpoints", fmt.Sprintf("%d ready", s.Endpoints))
	}
	for _, e := range w.Events {
		fact("event", instant(e.Time)+" "+e.Object+" "+e.Reason+": "+oneLine(e.Message))
	}
	return b.String()
}

// leaseParagraph returns who holds a lease, or nothing if it was not read.
func leaseParagraph(l *health.Lease) string {
	switch {
	case l == nil:
		return ""
	case !l.Exists:
		return paragraph("lease", "does not exist")
	case l.Holder == "":
		return paragraph("lease", "has no holder")
	}
	return paragraph("lease", "held by "+l.Holder+" since "+instant(l.Since))
}

// arbiterText returns whether API servers can ask an arbiter about bindings.
func arbiterText(a *health.Arbiter) string {
	if !a.Trusted {
		return a.Name + ", not trusted by API servers yet"
	}
	return a.Name + ", asked about each binding"
}

// routeText returns how many pods got the scheduler by its route.
func routeText(r *health.Route) string {
	if r == nil {
		return ""
	}
	text := fmt.Sprintf("%s routed: %d bound, %d waiting", plural.Count(r.Bound+r.Waiting, "pod"), r.Bound, r.Waiting)
	if r.Share < v1alpha1.WholeShare {
		text += fmt.Sprintf(", a share of %d %%", r.Share)
	}
	if r.Suspended {
		text += ", suspended since " + instant(r.SuspendedSince)
	}
	return text
}

// rolloutText returns the step of a rollout and its gates, or how it ended.
func rolloutText(r *health.Route) string {
	if r == nil || r.Rollout == nil {
		return ""
	}
	o := r.Rollout
	if o.Verdict != "" {
		return o.Verdict + prefixed(": ", o.Reason)
	}
	return fmt.Sprintf("step %d of %d, gates %s", o.Step, o.Steps, strings.Join(o.Gates, ", "))
}

func replicaText(r health.Replica) string {
	state := "not ready"
	if r.Ready {
		state = "ready"
	}
	text := joinNonEmpty(r.Pod+" on "+orDash(r.Node), state+" since "+instant(r.Since))
	if r.Leads {
		text += ", leader"
	}
	if r.Terminating {
		text += ", being deleted"
	}
	if r.Restarts > 0 {
		text += fmt.Sprintf(", restarts: %d", r.Restarts)
	}
	if r.NodeProblem != "" {
		text += ", its node " + r.NodeProblem
	}
	return text
}

// schedulingText returns the scheduling attempts that the replicas counted, or the reason why they
// are unknown.
func schedulingText(s *health.Scheduling) string {
	if s == nil {
		return ""
	}
	if s.Replicas == 0 {
		return "unknown: " + s.Unknown
	}
	text := fmt.Sprintf("%d scheduled, %d unschedulable, %d errors", s.Scheduled, s.Unschedulable, s.Errors)
	if s.P99 > 0 {
		text += fmt.Sprintf("; latency p50 %s, p99 %s", seconds(s.P50), seconds(s.P99))
	}
	return text + prefixed("; not of all replicas: ", s.Unknown)
}

func findingsText(findings []health.Finding) string {
	if len(findings) == 0 {
		return "\nno findings\n"
	}
	var b strings.Builder
	b.WriteString("\nFINDINGS\n")
	for _, f := range findings {
		b.WriteString(wrapText(f.String(), "", "  "))
		if f.Detail != "" {
			b.WriteString(strings.TrimRight(f.Detail, "\n") + "\n")
		}
		if f.Hint != "" {
			b.WriteString(wrapText("hint: "+f.Hint, "  ", "  "))
		}
	}
	return b.String()
}
