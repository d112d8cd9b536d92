package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/preemption"
)

func simulatePreemptionsCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "preemptions", Usage: "show who can evict whom, and where a pod of each class lands",
		Description: "Lists the priority classes, the workloads that each may evict, and PodDisruptionBudgets that do not hold. " +
			"The scheduler places one pod of each class, each in the state of the snapshot, and its victims are listed. The pods " +
			"have the requests of a typical pod of the class, and no other constraints.",
		UsageText: command.Examples("pmk-sched simulate preemptions",
			"pmk-sched simulate preemptions --snapshot cluster.tar.gz --requests cpu=4,memory=8Gi -o json"),
		Flags: simulatedFlags(
			&cli.StringFlag{Name: "requests", Usage: "`RESOURCE=AMOUNT,...` that the pods request",
				DefaultText: "the median of the pods of each class"},
			unknownReleaseFlag(u),
			timeoutFlag(simulateTimeout, "the scheduler to decide about all pods"), command.OutputFlag(""),
		),
		Action: func(c *cli.Context) error {
			var r preemption.Request
			var err error
			if r.Requests, err = parseRequests(c.String("requests")); err != nil {
				return err
			}
			if r.Input, err = readInput(c, u); err != nil {
				return err
			}
			result, err := preemption.Run(c.Context, u.Session, r)
			if err != nil {
				return err
			}
			return u.Data(c.String("output"), result, preemptionTable(result))
		},
	}
}

// parseRequests parses RESOURCE=AMOUNT, separated by commas.
func parseRequests(text string) (corev1.ResourceList, error) {
	requests := corev1.ResourceList{}
	if text == "" {
		return requests, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		name, amount, ok := strings.Cut(part, "=")
		quantity, err := resource.ParseQuantity(amount)
		if _, twice := requests[corev1.ResourceName(name)]; !ok || name == "" || twice || err != nil || quantity.Sign() < 0 {
			return nil, problem.Invalidf("", "invalid --requests %q: must be RESOURCE=AMOUNT, such as cpu=500m,memory=1Gi", part)
		}
		requests[corev1.ResourceName(name)] = quantity
	}
	return requests, nil
}

func preemptionTable(r *preemption.Result) string {
	var p printer
	p.Line("priority classes, by scheduler %s %s", r.Scheduler, r.Release)
	p.Head(len(r.Classes), "CLASS", "VALUE", "EVICTS OTHERS", "RUNNING", "PENDING", "MAY EVICT", "PODS", "EVICTED BY")
	for _, c := range first(r.Classes) {
		p.Row(c.Name, c.Value, !c.Never, c.Running, c.Pending, names(c.Evicts), c.EvictsPods, names(c.EvictedBy))
	}
	p.more(len(r.Classes))
	p.landings(r.Landings)
	p.evictable(r.Workloads)
	p.Head(len(r.Namespaces), "PODS OF NAMESPACE", "EVICTED BY NAMESPACE", "WITH CLASS", "PODS")
	for _, n := range first(r.Namespaces) {
		for _, e := range first(n.EvictedBy) {
			p.Row(n.Name, e.Namespace, e.Class, e.Pods)
		}
	}
	p.more(len(r.Namespaces))
	p.brokenBudgets(r.Budgets)
	for _, c := range r.Classes {
		for _, problem := range c.Problems {
			p.Line("\nclass %s: %s", c.Name, problem)
		}
	}
	p.notes(r.Notes)
	p.unknown(r.Unknown)
	return p.String()
}

func (p *printer) landings(all []preemption.Landing) {
	p.Head(len(all), "A POD OF CLASS", "REQUESTS", "LANDS ON", "EVICTS")
	for _, l := range first(all) {
		var requests []string
		for _, name := range slices.Sorted(maps.Keys(l.Requests)) {
			requests = append(requests, name+"="+l.Requests[name])
		}
		evicted := joined(first(l.Evicted), ", ", func(v preemption.Victim) string {
			return v.Namespace + "/" + v.Name + prefixed(" in spite of ", strings.Join(v.Violated, ", "))
		})
		where := l.Node
		if where == "" {
			where = "no node: " + oneLine(l.Reason)
		}
		p.Row(l.Class, names(requests), where, orDash(evicted))
	}
	p.more(len(all))
}

func (p *printer) evictable(all []preemption.Workload) {
	all = slices.DeleteFunc(slices.Clone(all), func(w preemption.Workload) bool { return len(w.EvictedBy) == 0 })
	p.Head(len(all), "WORKLOAD", "CLASS", "PRIORITY", "RUNNING", "EVICTED BY CLASS", "BUDGET")
	for _, w := range first(all) {
		p.Row(w.Namespace+"/"+w.Kind+"/"+w.Name, w.Class, w.Priority, w.Running, names(w.EvictedBy), names(w.Budgets))
	}
	p.more(len(all))
}

func (p *printer) brokenBudgets(all []preemption.Budget) {
	all = slices.DeleteFunc(slices.Clone(all), func(b preemption.Budget) bool { return len(b.Problems) == 0 })
	p.Head(len(all), "BUDGET", "RULE", "PODS", "ALLOWED", "PROBLEM")
	for _, b := range first(all) {
		for _, problem := range b.Problems {
			p.Row(b.Namespace+"/"+b.Name, b.Rule, b.Pods, b.Allowed, problem.Text)
		}
	}
	p.more(len(all))
}
