package observe

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
	"github.com/pmk-sched/pmk-sched/versions"
)

// defaultLease is the duration of a lease that has none (k8s.io/component-base/config/v1alpha1,
// defaults.go).
const defaultLease = 15 * time.Second

// lease reads the lease of leader election, which is named after the scheduler.
func (r *reading) lease(ctx context.Context) error {
	if elect := r.configuration().LeaderElect; elect != nil && !*elect {
		return nil
	}
	found, err := r.Kube.CoordinationV1().Leases(r.Namespace).Get(ctx, r.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		r.Lease = &health.Lease{}
		return nil
	}
	if err != nil {
		return kubeapi.Explain("read Lease/"+r.Namespace+"/"+r.Name, err)
	}
	l := &health.Lease{Exists: true, Duration: defaultLease}
	if found.Spec.HolderIdentity != nil {
		l.Holder = *found.Spec.HolderIdentity
	}
	if found.Spec.AcquireTime != nil {
		l.Since = found.Spec.AcquireTime.UTC()
	}
	if found.Spec.RenewTime != nil {
		l.Renewed = found.Spec.RenewTime.UTC()
	}
	if found.Spec.LeaseDurationSeconds != nil {
		l.Duration = time.Duration(*found.Spec.LeaseDurationSeconds) * time.Second
	}
	r.Lease = l
	r.leads, err = kubeapi.PodOfLeader(ctx, r.Kube, found, r.pods, ownership.Scheduler)
	return err
}

// leader marks the replica that holds the lease. On the host network the holder is the host name of
// the machine, which may differ from the node's name: then only the metrics show that no replica
// leads.
func (r *reading) leader() {
	l := r.Lease
	if l == nil || l.Holder == "" {
		return
	}
	host, _, _ := strings.Cut(l.Holder, "_")
	if pod := r.leads; pod != nil {
		for i := range r.Replicas {
			r.Replicas[i].Leads = r.Replicas[i].Pod == pod.Name
		}
		if !pod.Spec.HostNetwork || pod.Spec.NodeName == host {
			return
		}
	}
	hostNetwork := slices.ContainsFunc(r.pods, func(pod corev1.Pod) bool { return pod.Spec.HostNetwork })
	s := r.Scheduling
	noneLeads := s != nil && s.Unknown == "" && s.Replicas == len(r.pods) && s.Leading == 0
	if l.Foreign = len(r.pods) > 0 && !hostNetwork || noneLeads && s.Replicas > 0; l.Foreign {
		for i := range r.Replicas {
			r.Replicas[i].Leads = false
		}
	}
}

// metrics reads the counters of the replicas.
func (r *reading) metrics(ctx context.Context) {
	rules, _, err := versions.Select(r.observer.Release)
	if release, e := versions.FromServer(r.Release); e == nil {
		rules, _, err = versions.Select(release)
	}
	port := r.port()
	if err != nil || port == 0 || len(r.pods) == 0 {
		return
	}
	var texts []string
	unknown := ""
	for i := range r.pods {
		if !r.Replicas[i].Ready {
			continue
		}
		text, err := r.Metrics.Read(ctx, &r.pods[i], port)
		if err != nil {
			unknown = "the metrics of " + r.pods[i].Name + " are not readable: " + strings.Join(strings.Fields(err.Error()), " ")
			continue
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 && unknown == "" {
		return
	}
	r.Scheduling = health.ReadScheduling(texts, rules.Metrics.AttemptDuration)
	r.Scheduling.Unknown = unknown
}

// port returns the port of the scheduler, 0 if it is unknown.
func (r *reading) port() int {
	if r.live == nil {
		return 0
	}
	if c := r.container(r.live); c != nil && len(c.Ports) > 0 {
		return int(c.Ports[0].ContainerPort)
	}
	return 0
}
