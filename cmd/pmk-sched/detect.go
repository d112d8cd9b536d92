package main

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
)

func detectCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "detect", Usage: "inspect the cluster and print what a scheduler for it needs",
		Description: "Prints release, distribution, configuration API, control-plane nodes, the default scheduler and a " +
			"free port; on a control-plane node also the scheduler's own credentials. Known problems of the release are " +
			"printed with the condition under which they matter. Changes nothing. A warning is printed for everything that " +
			"cannot be read.",
		UsageText: command.Examples("pmk-sched detect", "pmk-sched detect --context staging -o json"),
		Flags:     []cli.Flag{nameFlag("scheduler"), command.OutputFlag("")},
		Action: func(c *cli.Context) error {
			sp, err := spec.Read(nameFlags(c, u))
			if err != nil {
				return err
			}
			info, err := lifecycle.Inspect(c.Context, u.Session, sp.Name, sp.Namespace)
			if err != nil {
				return err
			}
			return u.Conclude(c.String("output"), info, infoTable(info), "",
				"`pmk-sched check --name my-scheduler --preset binpack`")
		},
	}
}

// infoTable returns the result of `detect`: facts, one a line, then the control-plane nodes, the
// default scheduler's pods, the deployed schedulers and warnings.
func infoTable(i *inspect.Info) string {
	var p printer
	p.Pairs("Server", joinNonEmpty(i.Server.Version, i.Server.URL, i.Server.Platform),
		"Distribution", i.Distribution+", layout "+i.Layout,
		"Build from", joinNonEmpty(i.Source.Module, prefixed("Go ", i.Source.Go)),
		"Configuration", joinNonEmpty(orDash(i.Configuration.APIVersion),
			prefixed("accepted: ", joined(i.Configuration.Accepted, " ", path.Base))),
		"Nodes", nodeFact(i), "Control plane", controlPlaneFact(i),
		"Default scheduler", joinNonEmpty(i.Scheduler.Runs, prefixed("leader ", i.Scheduler.Lease.Holder)),
		"Port to use", portFact(i), "Ports taken", orDash(takenFact(i)))
	if i.Gangs != nil {
		p.Row("Gangs", i.Gangs)
	}
	p.routing(i.Routing)
	if i.Arbiter != "" {
		p.Row("Arbiter of bindings", "the webhook in namespace "+i.Arbiter)
	}
	p.credentials(i.Credentials)
	p.hosted(i.Hosted)
	if layout, _ := inspect.LayoutNamed(i.Layout); layout.Owner != "" {
		p.Row("Not possible", "replace: the default scheduler belongs to "+layout.Owner)
		p.Row("", "to change it, "+layout.Setting)
	}
	p.Head(len(i.ControlPlane.Nodes), "CONTROL-PLANE NODE", "READY", "KUBELET", "PLATFORM", "ADDRESS", "TAINTS")
	for _, n := range i.ControlPlane.Nodes {
		taints := joined(n.Taints, ", ", inspect.Taint.String)
		p.Row(n.Name, n.Ready, n.KubeletVersion, n.OS+"/"+n.Architecture, orDash(n.Address), orDash(taints))
	}
	p.Head(len(i.Scheduler.Pods), "DEFAULT SCHEDULER", "READY", "NODE", "PORTS", "IMAGE", "FLAGS")
	for _, pod := range i.Scheduler.Pods {
		ports := joined(pod.Ports, ",", strconv.Itoa)
		p.Row(pod.Name, pod.Ready, pod.Node, orDash(ports), pod.Image, orDash(flagList(pod.Command)))
	}
	p.Head(len(i.Scheduler.Deployed), "DEPLOYED SCHEDULER", "NAMESPACE", "RELEASE", "DUE", "IMAGE", "CERTIFICATE EXPIRES")
	for _, d := range i.Scheduler.Deployed {
		p.Row(d.Name, d.Namespace, orDash(d.Release), orDash(d.Due), d.Image, expiry(d.Certificate))
	}
	p.Head(len(i.KnownProblems), "KNOWN PROBLEMS")
	for _, line := range problemLines(i.KnownProblems) {
		p.Row(line)
	}
	p.Head(len(i.Warnings), "WARNINGS")
	for _, warning := range i.Warnings {
		p.Row("- " + warning)
	}
	p.Line("\n%s to the API server", plural.Count(int(i.Requests), "request"))
	return p.String()
}

// problemLines returns a line for each problem of a release, with the schedulers that meet its
// condition: deployed schedulers have the problems of their release too.
func problemLines(all []inspect.KnownProblem) []string {
	type key struct{ release, issue, effect string }
	var order []key
	texts, schedulers := map[key]string{}, map[key][]string{}
	for _, known := range all {
		k := key{known.Release, known.Issue, known.Effect}
		if _, found := texts[k]; !found {
			order, texts[k] = append(order, k), known.String()
		}
		if known.Scheduler != "" {
			schedulers[k] = append(schedulers[k], known.Scheduler)
		}
	}
	var lines []string
	for _, k := range order {
		owner := k.release
		if list := schedulers[k]; len(list) > 0 {
			owner += ", " + strings.Join(list, ", ")
		}
		lines = append(lines, "- "+owner+": "+texts[k])
	}
	return lines
}

func nodeFact(i *inspect.Info) string {
	var kubelets []string
	for _, kubelet := range i.Nodes.Kubelets {
		kubelets = append(kubelets, fmt.Sprintf("%s (%d)", kubelet.Version, kubelet.Count))
	}
	if len(kubelets) == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%d, kubelets %s", i.Nodes.Count, strings.Join(kubelets, ", "))
}

func controlPlaneFact(i *inspect.Info) string {
	if i.Hosted != nil {
		return joinNonEmpty("hosted, outside of the cluster: "+i.Hosted.Kind, prefixed("by ", i.Hosted.Evidence))
	}
	labelled := len(i.ControlPlane.Labelled())
	switch {
	case i.ControlPlane.Count == 0:
		return "no nodes found"
	case i.ControlPlane.LabelKey == "":
		return fmt.Sprintf("%d, none with a label of control-plane nodes", i.ControlPlane.Count)
	}
	label := i.ControlPlane.LabelKey
	if i.ControlPlane.LabelValue != "" {
		label += "=" + i.ControlPlane.LabelValue
	}
	fact := fmt.Sprintf("%d with label %s", labelled, label)
	if others := i.ControlPlane.Count - labelled; others > 0 {
		fact += fmt.Sprintf(", %d without", others)
	}
	return fact
}

func portFact(i *inspect.Info) string {
	if i.Scheduler.Port == 0 {
		return "none free"
	}
	fact := strconv.Itoa(i.Scheduler.Port)
	if i.Scheduler.InsecurePort != 0 {
		fact += fmt.Sprintf(", and %d for plain HTTP on loopback", i.Scheduler.InsecurePort)
	}
	return fact
}

// takenFact lists the ports in use near the scheduler's port. JSON lists all of them.
func takenFact(i *inspect.Info) string {
	var list []string
	for _, taken := range i.Scheduler.Taken {
		if taken.Port >= 10250 && taken.Port <= inspect.LastPort {
			list = append(list, fmt.Sprintf("%d (%s)", taken.Port, taken.By))
		}
	}
	return strings.Join(list, ", ")
}

// hosted prints the permissions in a hosted control plane.
func (p *printer) hosted(h *inspect.Hosted) {
	if h == nil {
		return
	}
	label := "Not possible"
	for _, text := range h.Impossible {
		p.Row(label, text)
		label = ""
	}
	label = "Not known"
	for _, text := range h.Unknown {
		p.Row(label, text)
		label = ""
	}
	p.Row("To deploy", h.Command)
}

func (p *printer) credentials(found inspect.Credentials) {
	if found.Kubeconfig == "" {
		p.Row("Credentials", "none: not on a control-plane node")
		return
	}
	p.Row("Credentials", joinNonEmpty(found.Kubeconfig, found.Server))
	if found.Subject != "" {
		p.Row("", "user "+found.User+", certificate "+found.Subject)
	}
	if found.Expires != nil {
		p.Row("", "expires "+instant(*found.Expires))
	}
}

// flagList leaves out the program's name with a wrapper and its flags, and line breaks in a script.
func flagList(command []string) string {
	program := slices.IndexFunc(command, func(word string) bool { return path.Base(word) == "kube-scheduler" })
	return strings.Join(strings.Fields(strings.Join(command[min(max(0, program)+1, len(command)):], " ")), " ")
}

func expiry(c *inspect.MountedCertificate) string {
	if c == nil {
		return "-"
	}
	return c.Expires.Format(time.DateOnly)
}

// routing prints what can route pods to a scheduler, and what else does.
func (p *printer) routing(r *inspect.Routing) {
	if r == nil {
		return
	}
	switch {
	case r.PolicyAPI != "":
		p.Row("Routing of pods", "by policies of the API server ("+r.PolicyAPI+")")
	case r.WebhookNamespace != "":
		p.Row("Routing of pods", "by the webhook in namespace "+r.WebhookNamespace)
	}
	for _, other := range r.Others {
		p.Row("Other router", other.String()+" sets the scheduler of pods")
	}
}
