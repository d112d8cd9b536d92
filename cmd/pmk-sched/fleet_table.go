package main

import (
	"slices"
	"strings"
	"time"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
	"github.com/pmk-sched/pmk-sched/internal/deploy/preflight"
	"github.com/pmk-sched/pmk-sched/internal/fleet"
	"github.com/pmk-sched/pmk-sched/internal/replace"
)

// notRead is the finding for a cluster that could not be read. Its error is below the table.
const notRead = "not-read"

// fleetStatusTable has a row for each scheduler and extender, for each replaced default scheduler,
// and for each cluster without any.
func fleetStatusTable(rows []fleet.Row[replace.Status], now time.Time) string {
	var p printer
	p.Row("CLUSTER", "RELEASE", "SCHEDULER", "IMAGE", "DRIFT", "CERTIFICATE", "VERIFIED", "FINDINGS")
	requests := int64(0)
	for _, row := range rows {
		s := row.Result
		if s == nil {
			p.Row(row.Cluster, "-", "-", "-", "-", "-", "-", notRead)
			continue
		}
		requests += s.Requests
		before := p.Len()
		for _, n := range s.Nodes {
			if n.Replaced {
				p.Row(row.Cluster, orDash(s.Server), "default of "+n.Node, shortReference(n.Image), "-", "-", "-",
					codesOf(&health.Workload{Kind: health.Node, Name: n.Node}, s.Findings))
			}
		}
		for _, w := range slices.Concat(s.Schedulers, s.Extenders) {
			p.Row(row.Cluster, orDash(s.Server), w.Namespace+"/"+w.Name, orDash(shortReference(w.Image)), driftOf(w),
				daysLeft(w.Certificate, now), verifiedAt(w), codesOf(w, s.Findings))
		}
		if p.Len() == before {
			code := "none"
			if row.Error != "" {
				code = notRead
			}
			p.Row(row.Cluster, orDash(s.Server), "-", "-", "-", "-", "-", code)
		}
	}
	p.Line("\n%s, %s to their API servers", plural.Count(len(rows), "cluster"), plural.Count(int(requests), "request"))
	return p.String()
}

// driftOf counts the objects that differ from the revision.
func driftOf(w *health.Workload) string {
	switch {
	case w.Revision == 0:
		return "-"
	case len(w.Drift) == 0:
		return "none"
	case len(w.Drift) == 1:
		return "1 object"
	}
	return plural.Count(len(w.Drift), "object")
}

// verifiedAt is the day on which a scheduler was last proved to bind pods.
func verifiedAt(w *health.Workload) string {
	if w.Verified.IsZero() {
		return "-"
	}
	return w.Verified.Format(time.DateOnly)
}

// daysLeft returns the number of whole days that a certificate is valid.
func daysLeft(c *health.Certificate, now time.Time) string {
	if c == nil {
		return "-"
	}
	if left := c.Expires.Sub(now); left > 0 {
		return plural.Count(int(left/(24*time.Hour)), "day")
	}
	return "expired"
}

func fleetCheckTable(rows []fleet.Row[fleet.Checks]) string {
	var p printer
	p.Row("CLUSTER", "PASSED", "WARNINGS", "UNKNOWN", "FAILED")
	for _, row := range rows {
		if row.Result == nil {
			p.Row(row.Cluster, "-", "-", "-", notRead)
			continue
		}
		count := map[preflight.Status]int{}
		var failed []string
		for _, o := range row.Result.Outcomes {
			if count[o.Status]++; o.Status == preflight.Failed {
				failed = append(failed, o.Name)
			}
		}
		p.Row(row.Cluster, count[preflight.Passed], count[preflight.Warned], count[preflight.Unknown],
			orDash(strings.Join(failed, ", ")))
	}
	return p.String()
}

func failedChecks(checks *fleet.Checks) []string {
	var list []string
	for _, o := range checks.Outcomes {
		if o.Status == preflight.Failed {
			list = append(list, oneLine(o.Detail)+" ["+o.Name+"]")
		}
	}
	return list
}

func fleetDetectTable(rows []fleet.Row[inspect.Info]) string {
	var p printer
	p.Row("CLUSTER", "RELEASE", "DISTRIBUTION", "NODES", "CONTROL PLANE", "SCHEDULERS", "KNOWN PROBLEMS", "WARNINGS")
	for _, row := range rows {
		i := row.Result
		if i == nil {
			p.Row(row.Cluster, "-", "-", "-", "-", "-", "-", notRead)
			continue
		}
		schedulers := joined(i.Scheduler.Deployed, ", ", func(d inspect.DeployedScheduler) string {
			return joinNonEmpty(d.Namespace + "/" + d.Name + prefixed(" ", d.Release))
		})
		p.Row(row.Cluster, i.Server.Version, i.Distribution, i.Nodes.Count, i.ControlPlane.Count, orDash(schedulers),
			len(i.KnownProblems), len(i.Warnings))
	}
	return p.String()
}

// texts returns findings as lines.
func texts(findings []health.Finding) []string {
	var list []string
	for _, f := range findings {
		list = append(list, f.String())
	}
	return list
}

// fleetFindings returns an error with the findings from all clusters, and the clusters that could
// not be read.
func fleetFindings[T any](rows []fleet.Row[T], findings func(*T) []string) error {
	found, unread, text := 0, 0, ""
	for _, row := range rows {
		var list []string
		if row.Result != nil {
			list = findings(row.Result)
		}
		if len(list) > 0 {
			found++
		}
		if row.Error != "" {
			unread++
			list = append(list, oneLine(row.Error))
		}
		for _, finding := range list {
			text += "\n" + row.Cluster + ": " + finding
		}
	}
	if text == "" {
		return nil
	}
	return command.CheckFailed("%d of %s findings, %d could not be read%s", found,
		plural.Phrase(len(rows), "cluster has", "clusters have"), unread, text)
}
