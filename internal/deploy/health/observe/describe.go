package observe

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/versions"
)

const (
	// defaultLease is the duration of a lease that has none (k8s.io/component-base/config/v1alpha1,
	// defaults.go).
	defaultLease = 15 * time.Second
	// maxEvents limits the last events that are kept.
	maxEvents = 5
)

// describe describes the workloads that were read. release is the API server's release.
func (c *cluster) describe(release versions.Release) *Result {
	result := &Result{Schedulers: []*health.Workload{}, Extenders: []*health.Workload{}} // lists in JSON too
	for _, w := range c.workloads {
		h := &health.Workload{Kind: w.kind, Name: w.Name, Namespace: w.Namespace, InstalledBy: ownership.Manager,
			Waiting: w.waiting, Route: w.route}
		if w.pods != nil {
			h.Replicas = []health.Replica{}
		}
		w.describeRevision(h)
		w.describeDeployment(h, release)
		w.describeCredentials(h, c.controlPlane)
		for i := range w.pods {
			h.Replicas = append(h.Replicas, describePod(&w.pods[i], c.nodes[w.pods[i].Spec.NodeName]))
		}
		if w.kind == health.Extender {
			w.describeService(h)
			result.Extenders = append(result.Extenders, h)
		} else {
			w.describeMetrics(h, release)
			w.describeLease(h)
			w.describeCalls(h, c.extenders)
			result.Schedulers = append(result.Schedulers, h)
		}
		w.describeEvents(h)
		for _, r := range w.requests {
			unknown(h, kubeapi.Explain(r.doing, r.err))
		}
	}
	return result
}

// unknown records why a part of a workload is unknown.
func unknown(h *health.Workload, err error) {
	if err != nil && !slices.Contains(h.Unknown, err.Error()) {
		h.Unknown = append(h.Unknown, err.Error())
	}
}

// describeRevision compares the live objects with the recorded revision.
func (w *workload) describeRevision(h *health.Workload) {
	if p := w.pending; p != nil {
		h.Unfinished = &health.Unfinished{Revision: p.Number, Since: p.Created.UTC(), By: p.By}
	}
	if w.undeployed {
		unknown(h, fmt.Errorf("%s has no deployed revision to compare with", h))
	}
	if w.recorded == nil {
		return
	}
	h.Revision, h.Verified = w.recorded.Number, w.recorded.Verified
	unknown(h, w.recorded.Damage)
	drift, unread := Drift(w.comparisons, h.Revision)
	h.Drift = append(h.Drift, drift...)
	for _, err := range unread {
		unknown(h, err)
	}
}

// Drift returns how live objects differ from a revision's objects, and an error for each object
// that could not be compared.
func Drift(comparisons []apply.Comparison, revision int) (drift []health.ObjectDrift, unread []error) {
	for _, c := range comparisons {
		d := health.ObjectDrift{Object: c.Object, Foreign: c.Foreign}
		switch {
		case c.Err != nil:
			unread = append(unread, fmt.Errorf("compare %s with revision %d: %w", c.Object, revision, c.Err))
			continue
		case c.Foreign:
		case c.Action == apply.Unchanged:
			continue
		case c.Live == nil:
			d.Missing = true
		default:
			if d.Fields = health.CompareFields(c.Live, c.Applied); len(d.Fields) == 0 {
				continue
			}
		}
		drift = append(drift, d)
	}
	return drift, unread
}

// describeDeployment describes the Deployment's labels, replicas and image.
func (w *workload) describeDeployment(h *health.Workload, server versions.Release) {
	d := w.deployment
	if d == nil {
		return
	}
	if d.Labels[ownership.LabelManagedBy] == ownership.Helm {
		h.InstalledBy = ownership.Helm
	}
	if h.Wanted = 1; d.Spec.Replicas != nil {
		h.Wanted = *d.Spec.Replicas
	}
	if w.live != nil {
		h.Ready = d.Status.ReadyReplicas
	}
	if c := w.container(d); c != nil {
		h.Image = c.Image
	}
	if w.kind == health.Extender {
		return
	}
	release, err := versions.FromServer(d.Labels[ownership.LabelRelease])
	if err != nil {
		unknown(h, errors.New("its release is unknown"))
		return
	}
	h.Release = release.String()
	if release.MinorString() != server.MinorString() {
		h.Server = server.String()
	}
}

// describeCredentials describes a scheduler's credentials, and the workload's certificate that
// expires first. It finds the node, among several, whose API server the credentials name.
func (w *workload) describeCredentials(h *health.Workload, controlPlane []corev1.Node) {
	first, err := inspect.FirstToExpire(w.mounted)
	unknown(h, err)
	if first != nil {
		h.Certificate = &health.Certificate{Object: first.Object, Subject: first.Subject, Expires: first.Expires}
	}
	report := w.credentials
	if report == nil {
		return
	}
	h.Credentials = &health.Credentials{Mode: report.Mode, Subject: report.Subject, Source: report.Source,
		Renewal: report.Renewal, Expires: report.Expires}
	if report.Expires != nil && (h.Certificate == nil || report.Expires.Before(h.Certificate.Expires)) {
		h.Certificate = &health.Certificate{Object: report.Source, Subject: report.Subject, Expires: *report.Expires}
	}
	if !w.copiesNode() {
		return
	}
	server, err := url.Parse(report.Server)
	if err != nil {
		unknown(h, fmt.Errorf("read the address of the API server of %s: %w", h, err))
		return
	}
	for i := range controlPlane {
		node, host := &controlPlane[i], server.Hostname()
		serves := node.Name == host || slices.ContainsFunc(node.Status.Addresses,
			func(a corev1.NodeAddress) bool { return a.Address == host })
		if serves && slices.ContainsFunc(controlPlane, func(other corev1.Node) bool { return other.Name != node.Name }) {
			h.DependsOn = node.Name
		}
	}
}

// describeMetrics sums up the replicas' metrics.
func (w *workload) describeMetrics(h *health.Workload, release versions.Release) {
	if len(w.metrics) == 0 {
		return
	}
	if own, err := versions.FromServer(h.Release); err == nil {
		release = own
	}
	var texts []string
	reason := ""
	for _, m := range w.metrics {
		if m.err != nil {
			reason = "the metrics of " + m.pod + " are not readable: " + strings.Join(strings.Fields(m.err.Error()), " ")
			continue
		}
		texts = append(texts, m.text)
	}
	h.Scheduling = health.ReadScheduling(texts, release.Rules().Metrics.AttemptDuration)
	h.Scheduling.Unknown = reason
}

// describeLease describes the lease, and marks the replica that holds it. On the host network the
// holder is the machine's host name, which may differ from the node's name: then only the metrics
// show that no replica leads.
func (w *workload) describeLease(h *health.Workload) {
	if w.lease == nil {
		return
	}
	l := describeLease(w.lease)
	if h.Lease = l; l.Holder == "" {
		return
	}
	hostNetwork := slices.ContainsFunc(w.pods, func(pod corev1.Pod) bool { return pod.Spec.HostNetwork })
	s := h.Scheduling
	noneLeads := s != nil && s.Unknown == "" && s.Replicas == len(w.pods) && s.Leading == 0
	l.Foreign = len(w.pods) > 0 && (!hostNetwork || noneLeads)
	if pod := w.leader; pod != nil {
		sure := !pod.Spec.HostNetwork || pod.Spec.NodeName == kubeapi.HostOf(w.lease)
		l.Foreign = l.Foreign && !sure
		for i := range h.Replicas {
			h.Replicas[i].Leads = h.Replicas[i].Pod == pod.Name && !l.Foreign
		}
	}
}

// describeLease describes a lease. A lease without a name does not exist.
func describeLease(lease *coordinationv1.Lease) *health.Lease {
	spec := lease.Spec
	l := &health.Lease{Exists: lease.Name != "", Duration: defaultLease}
	if spec.AcquireTime != nil {
		l.Since = spec.AcquireTime.UTC()
	}
	if spec.RenewTime != nil {
		l.Renewed = spec.RenewTime.UTC()
	}
	if spec.LeaseDurationSeconds != nil {
		l.Duration = time.Duration(*spec.LeaseDurationSeconds) * time.Second
	}
	if spec.HolderIdentity != nil {
		l.Holder = *spec.HolderIdentity
	}
	return l
}

// describeCalls lists the extenders that the scheduler calls, and the extenders with a Service that
// are not deployed. Without a revision only sidecars are known.
func (w *workload) describeCalls(h *health.Workload, deployed []string) {
	if w.recorded == nil {
		if w.live != nil {
			h.Calls = manifest.Sidecars(w.live)
		}
		return
	}
	called, err := deploy.ExtendersOf(w.recorded)
	unknown(h, err)
	for _, e := range called {
		h.Calls = append(h.Calls, e.Name)
		if !e.Sidecar && !slices.Contains(deployed, e.Name) {
			h.Missing = append(h.Missing, e.Name)
		}
	}
}

// describeService counts the ready endpoints of an extender's Service.
func (w *workload) describeService(h *health.Workload) {
	if w.unreachable != nil {
		h.Unreachable = w.unreachable.Error()
	}
	if w.service == nil {
		return
	}
	h.Service = &health.Service{Exists: w.service.Name != ""}
	for _, endpoint := range w.endpoints {
		// unknown is ready (discovery/v1, EndpointConditions)
		if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
			h.Service.Endpoints++
		}
	}
}

// describeEvents describes the last events.
func (w *workload) describeEvents(h *health.Workload) {
	for i := range w.events {
		e := &w.events[i]
		h.Events = append(h.Events, health.Event{
			Time: kubeapi.EventTime(e).UTC(), Type: e.Type, Object: e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name,
			Reason: e.Reason, Message: e.Message, Count: e.Count,
		})
	}
	slices.SortStableFunc(h.Events, func(a, b health.Event) int { return a.Time.Compare(b.Time) })
	h.Events = h.Events[max(0, len(h.Events)-maxEvents):]
}
