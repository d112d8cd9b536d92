package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
)

const (
	// certificateSoon is the time before its end from which a certificate is a finding.
	certificateSoon = 30 * 24 * time.Hour
	// ignoredFor is the time that a pod may wait before its scheduler has reported on it.
	ignoredFor = time.Minute
	// clockSkew is the difference that the clocks on this machine and a scheduler's node may have.
	clockSkew = 30 * time.Second
	// takeover is the time that a replica that was replaced may hold the lease while the new ones are
	// ready.
	takeover = 30 * time.Second
	// longestMessage bounds a message from the cluster in a finding, in characters.
	longestMessage = 200
)

// Findings returns a workload's problems at a time, in a fixed order.
func (w *Workload) Findings(now time.Time) []Finding {
	return slices.Concat(w.changed(), w.replicas(), w.leadership(now), w.pods(now), w.routing(), w.certificate(now),
		w.skew(), w.extenders())
}

func (w *Workload) finding(code Code, hint, format string, args ...any) Finding {
	return subject{w.Kind, w.Name, w.Namespace}.finding(code, hint, format, args...)
}

// subject is the object of findings.
type subject struct {
	kind            Kind
	name, namespace string
}

func (s subject) finding(code Code, hint, format string, args ...any) Finding {
	return Finding{Code: code, Kind: s.kind, Name: s.name, Namespace: s.namespace,
		Text: fmt.Sprintf(format, args...), Hint: hint}
}

// changed compares the workload with its deployed revision.
func (w *Workload) changed() []Finding {
	if u := w.Unfinished; u != nil {
		by := ""
		if u.By != "" {
			by = " by " + u.By
		}
		return []Finding{w.finding(DeployUnfinished, "wait until it has ended; if it was killed, deploy again",
			"the deployment of revision %d%s, begun at %s, has not ended", u.Revision, by, stamp(u.Since))}
	}
	var found []Finding
	for _, d := range w.Drift {
		switch {
		case d.Missing:
			found = append(found, w.finding(ObjectMissing, w.redeploy(), "%s of revision %d does not exist", d.Object,
				w.Revision))
		case d.Foreign:
			found = append(found, w.finding(ObjectForeign, "set the labels again, or deploy under another name",
				"%s has lost the labels of pmk-sched, so that deploy and uninstall do not touch it", d.Object))
		default:
			f := w.finding(Drifted, w.redeploy(), "%s differs from revision %d in %s", d.Object, w.Revision,
				plural.Count(len(d.Fields), "field"))
			for _, field := range d.Fields {
				f.Detail += "  " + field.String() + "\n"
			}
			found = append(found, f)
		}
	}
	return found
}

func (w *Workload) redeploy() string {
	return fmt.Sprintf(
		"deploy it again to undo the change, or from a changed file to keep it; `pmk-sched history --name %s` lists what "+
			"was deployed", w.Name)
}

// replicas judges each pod, and whether there are enough.
func (w *Workload) replicas() []Finding {
	var found []Finding
	var present int32
	for _, r := range w.Replicas {
		if !r.Terminating {
			present++
		}
		if f, bad := w.replica(r); bad {
			found = append(found, f)
		}
	}
	if present < w.Wanted && w.Unfinished == nil && w.Replicas != nil {
		found = append(found, w.finding(ReplicaMissing,
			"see `kubectl describe replicaset` for quota and admission, and check that kube-controller-manager runs",
			"%d of %s", present, plural.Phrase(int(w.Wanted), "replica exists", "replicas exist")))
	}
	return found
}

// replica judges one pod.
func (w *Workload) replica(r Replica) (Finding, bool) {
	message, class := shorten(r.Message), podstatus.Classify(r.Reason)
	switch {
	case r.NodeProblem != "":
		return w.finding(NodeNotReady, "repair the node, or delete its Node object if it will not return",
			"replica %s is on node %s, which %s", r.Pod, r.Node, r.NodeProblem), true
	case r.Ready || r.Terminating:
		return Finding{}, false
	case r.Node == "":
		return w.finding(ReplicaUnbound, "see `kubectl describe pod "+r.Pod+" -n "+w.Namespace+"`",
			"replica %s has no node: %s", r.Pod, cmp.Or(message, "no scheduler has reported on it")), true
	case class.Image():
		return w.finding(ImageUnavailable, "load the image on that node, or push it to a registry that the node reaches",
			"node %s does not get the image of replica %s: %s", r.Node, r.Pod, joined(r.Reason, message)), true
	case class != podstatus.Starting:
		return w.finding(ReplicaCrashing,
			"see `pmk-sched logs --name "+w.Name+"`; `pmk-sched rollback` returns to an earlier revision",
			"replica %s on node %s does not run, after %s: %s", r.Pod, r.Node, plural.Count(int(r.Restarts),
				"restart"), joined(r.Reason, message)), true
	}
	return w.finding(ReplicaNotReady, "see `pmk-sched logs --name "+w.Name+"`",
		"replica %s on node %s is not ready since %s%s", r.Pod, r.Node, stamp(r.Since), prefixed(": ",
			joined(r.Reason, message))), true
}

// leadership judges the lease.
func (w *Workload) leadership(now time.Time) []Finding {
	l := w.Lease
	if l == nil {
		return nil
	}
	const logs = "see `pmk-sched logs` for why no replica acquires it: permissions, credentials or the API server"
	switch {
	case !l.Exists:
		return []Finding{w.finding(NoLeader, logs, "no replica leads: lease %s does not exist", w.Name)}
	case l.Holder == "":
		return []Finding{w.finding(NoLeader, logs, "no replica leads: lease %s has no holder", w.Name)}
	case now.Sub(l.Renewed) > l.Duration+clockSkew:
		return []Finding{w.finding(NoLeader, logs, "no replica leads: %s last renewed lease %s at %s", l.Holder, w.Name,
			stamp(l.Renewed))}
	case w.Wanted == 0 && w.Replicas != nil && len(w.Replicas) == 0:
		// The last replica may not have released the lease: it was killed, or stopped just when it
		// acquired it.
		return []Finding{w.finding(NoLeader, "scale the Deployment up, or deploy again",
			"no replica leads: none exists, and lease %s still names %s", w.Name, l.Holder)}
	case l.Foreign && l.Renewed.After(w.newest().Add(takeover)):
		return []Finding{w.finding(LeaseForeign,
			"find the other scheduler that uses this lease, and stop it or give it another name",
			"lease %s is held by %s since %s, which is none of the replicas: they do not schedule", w.Name, l.Holder,
			stamp(l.Since))}
	}
	return nil
}

// newest returns the time when the last replica became ready, or was created.
func (w *Workload) newest() time.Time {
	var last time.Time
	for _, r := range w.Replicas {
		if r.Since.After(last) {
			last = r.Since
		}
	}
	return last
}

// pods judges the pods that wait.
func (w *Workload) pods(now time.Time) []Finding {
	p := w.Waiting
	if p == nil || p.Ignored == 0 || now.Sub(p.IgnoredSince) < ignoredFor {
		return nil
	}
	return []Finding{w.finding(PodsIgnored,
		"see `pmk-sched logs --name "+w.Name+"`, and `pmk-sched verify --name "+w.Name+"`",
		"the scheduler has not reported on %s that name it; the oldest, %s, waits since %s", plural.Count(p.Ignored,
			"pod"), p.OldestIgnored, stamp(p.IgnoredSince))}
}

// routing judges the route.
func (w *Workload) routing() (found []Finding) {
	r := w.Route
	if r == nil {
		return nil
	}
	if r.Suspended {
		found = append(found, w.finding(RouteSuspended,
			"it is resumed when a replica has led for a minute; the other findings say why none does",
			"new pods are not routed to the scheduler since %s: no replica led", stamp(r.SuspendedSince)))
	}
	if r.Unguarded {
		found = append(found, w.finding(RouteUnguarded,
			"install the controller with `pmk-sched controller render --image IMAGE --admission route`",
			"nothing ends the route if no replica leads: routed pods would wait"))
	}
	return found
}

// certificate judges the certificate that expires first.
func (w *Workload) certificate(now time.Time) []Finding {
	c := w.Certificate
	if c == nil || c.Expires.Sub(now) >= certificateSoon {
		return nil
	}
	renew := "deploy it again, which renews it; a copy of a node's certificate is as new as that of the node where " +
		"deploy runs"
	if w.Credentials != nil && w.Credentials.Source == c.Object && w.Credentials.Renewal != "" {
		renew = "renewed: " + w.Credentials.Renewal
	}
	day := c.Expires.UTC().Format(time.DateOnly)
	if !now.Before(c.Expires) {
		return []Finding{w.finding(CertificateExpired, renew, "the certificate in %s expired on %s", c.Object, day)}
	}
	return []Finding{w.finding(CertificateExpiring, renew, "the certificate in %s expires in %s, on %s", c.Object,
		plural.Count(int(c.Expires.Sub(now).Hours()/24), "day"), day)}
}

// skew judges the release and the API server that the replicas use.
func (w *Workload) skew() []Finding {
	var found []Finding
	if w.Server != "" {
		hint := "`pmk-sched upgrade --name " + w.Name + "` builds and deploys it for that release"
		if w.InstalledBy == "Helm" {
			hint = "upgrade its Helm release with a chart for that release"
		}
		found = append(found, w.finding(ReleaseSkew, hint, "it is %s, the API server is %s", w.Release, w.Server))
	}
	if w.DependsOn != "" {
		found = append(found, w.finding(DependsOnNode,
			"deploy it again, with --credentials hostpath or serviceaccount if it is refused",
			"all replicas use the API server of node %s: without that node none schedules", w.DependsOn))
	}
	return found
}

// extenders checks the extenders that a scheduler calls, and whether an extender can be called.
func (w *Workload) extenders() []Finding {
	var found []Finding
	for _, name := range w.Missing {
		found = append(found, w.finding(ExtenderMissing,
			"deploy the extender again, or remove it from the scheduler with `pmk-sched extender uninstall --name "+name+"`",
			"it calls extender %s, which is not deployed", name))
	}
	const endpoints = "the findings of its replicas have the reason; schedulers fail pods that need a required extender"
	switch s := w.Service; {
	case s == nil:
	case !s.Exists:
		found = append(found, w.finding(ExtenderNoEndpoints, "deploy the extender again", "its Service does not exist"))
	case s.Endpoints == 0:
		found = append(found, w.finding(ExtenderNoEndpoints, endpoints, "its Service has no ready endpoints"))
	}
	if w.Unreachable != "" {
		found = append(found, w.finding(ExtenderUnreachable, "check the pod network and NetworkPolicies of its nodes",
			"the API server does not reach its pods, so schedulers may not either: %s", w.Unreachable))
	}
	return found
}

// stamp is a time in a message.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// shorten returns a message's beginning as one line.
func shorten(text string) string {
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) > longestMessage {
		return string(line[:longestMessage]) + " …"
	}
	return string(line)
}
