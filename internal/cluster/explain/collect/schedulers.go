package collect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/explain"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

const (
	// defaultLease is the lease of the default scheduler.
	defaultLease = "kube-scheduler"
	// leaseSlack is how much older than its duration a lease may be before it counts as expired: clocks differ.
	leaseSlack = 5 * time.Second
)

// schedulers finds the schedulers of the cluster: schedulers that pmk-sched installed, the default
// scheduler, and others by their leases.
func (r *reader) schedulers(ctx context.Context) error {
	var deployments []appsv1.Deployment
	err := r.retry.Do(ctx, "list schedulers", func(ctx context.Context) (err error) {
		deployments, err = kubeapi.InstalledDeployments(ctx, r.kube.AppsV1(), metav1.NamespaceAll)
		return err
	})
	if err = r.optional(err); err != nil {
		return err
	}
	leases, err := r.leases(ctx)
	if err = r.optional(err); err != nil {
		return err
	}
	known := map[string]bool{}
	for i := range deployments {
		if deployments[i].Labels[ownership.LabelName] == ownership.Extender {
			continue
		}
		if err := r.installed(ctx, &deployments[i], leases); err != nil {
			return err
		}
		known[deployments[i].Namespace+"/"+deployments[i].Name] = true
	}
	for i := range leases {
		r.leaseHolder(&leases[i], known)
	}
	return nil
}

// leases lists the leases of schedulers, by their name: in kube-system all of them, in other
// namespaces only the leases of the pod's scheduler.
func (r *reader) leases(ctx context.Context) ([]coordinationv1.Lease, error) {
	var found []coordinationv1.Lease
	add := func(namespace string, o metav1.ListOptions, wanted func(*coordinationv1.Lease) bool) error {
		return r.pages(ctx, "list leases", o, func(ctx context.Context, o metav1.ListOptions) (string, error) {
			got, err := r.kube.CoordinationV1().Leases(namespace).List(ctx, o)
			if err != nil {
				return o.Continue, err
			}
			for i := range got.Items {
				if wanted(&got.Items[i]) {
					found = append(found, got.Items[i])
				}
			}
			return got.Continue, nil
		})
	}
	name := r.in.Pod.Spec.SchedulerName
	err := add(metav1.NamespaceSystem, metav1.ListOptions{}, func(l *coordinationv1.Lease) bool {
		return l.Name == name || strings.Contains(l.Name, "scheduler")
	})
	return found, errors.Join(err, add(metav1.NamespaceAll, metav1.ListOptions{FieldSelector: "metadata.name=" + name}, func(l *coordinationv1.Lease) bool {
		return l.Namespace != metav1.NamespaceSystem
	}))
}

// leaseHolder adds the scheduler of a lease, unless it is known. A lease is named after its
// scheduler, except for the default scheduler.
func (r *reader) leaseHolder(lease *coordinationv1.Lease, known map[string]bool) {
	where := lease.Namespace + "/" + lease.Name
	if known[where] {
		return
	}
	s := explain.Scheduler{Name: lease.Name, Where: "Lease/" + where, Problem: leaseProblem(lease, r.in.Now)}
	if where == metav1.NamespaceSystem+"/"+defaultLease {
		s.Name = corev1.DefaultSchedulerName
	}
	r.in.Schedulers = append(r.in.Schedulers, s)
}

// leaseProblem returns why no process schedules, if the lease shows it.
func leaseProblem(lease *coordinationv1.Lease, now time.Time) string {
	where := "Lease/" + lease.Namespace + "/" + lease.Name
	spec := lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" {
		return where + " has no holder"
	}
	if spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		return ""
	}
	if age := now.Sub(spec.RenewTime.Time); age > time.Duration(*spec.LeaseDurationSeconds)*time.Second+leaseSlack {
		return fmt.Sprintf("%s was not renewed by %s for %s", where, kubeapi.HostOf(lease), age.Round(time.Second))
	}
	return ""
}

// installed adds the schedulers of a Deployment: one for each profile of its configuration.
func (r *reader) installed(ctx context.Context, d *appsv1.Deployment, leases []coordinationv1.Lease) error {
	s := explain.Scheduler{Name: d.Name, Where: kubeapi.ObjectName("Deployment", d.Namespace, d.Name)}
	for i := range leases {
		if leases[i].Namespace == d.Namespace && leases[i].Name == d.Name {
			s.Problem = leaseProblem(&leases[i], r.in.Now)
		}
	}
	if d.Status.ReadyReplicas == 0 {
		s.Problem = s.Where + " has no ready replica"
	}
	names := []string{d.Name}
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		data, err := r.configMap(ctx, d.Namespace, v.ConfigMap.Name)
		if err = r.optional(err); err != nil {
			return err
		}
		for _, text := range data {
			if c := readConfiguration(text, d.Labels[ownership.LabelRelease]); len(c.names) > 0 {
				names, s.Plugins, s.Extenders = c.names, c.plugins, c.extenders
			}
		}
	}
	for _, s.Name = range names {
		r.in.Schedulers = append(r.in.Schedulers, s)
	}
	return nil
}

func (r *reader) configMap(ctx context.Context, namespace, name string) (data map[string]string, err error) {
	err = r.retry.Do(ctx, "read "+kubeapi.ObjectName("ConfigMap", namespace, name), func(ctx context.Context) error {
		m, err := r.kube.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			data = m.Data
		}
		return err
	})
	return data, err
}

// configuration lists the scheduler names, plugins and extenders in a KubeSchedulerConfiguration.
type configuration struct{ names, plugins, extenders []string }

// readConfiguration reads a KubeSchedulerConfiguration. Other text has no names.
func readConfiguration(text, release string) configuration {
	summary, ok := profiles.Summarize([]byte(text))
	if !ok {
		return configuration{}
	}
	c := configuration{names: summary.Profiles, extenders: summary.Extenders}
	if version, err := versions.FromServer(release); err == nil {
		if found, err := profiles.Validate(profiles.ValidateRequest{Release: version, Source: []byte(text)}); err == nil {
			c.plugins = found.Plugins
		}
	}
	return c
}
