package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/cluster/explain"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

const (
	// defaultLease is the default scheduler's lease.
	defaultLease = "kube-scheduler"
	// leaseSlack is the time beyond its duration after which a lease counts as expired: clocks differ.
	leaseSlack = 5 * time.Second
)

// schedulers finds the cluster's schedulers: schedulers that pmk-sched installed, the default
// scheduler, and others by their leases.
func (r *reader) schedulers(ctx context.Context) error {
	deployments, err := kubeapi.Read(ctx, r.retry, "list schedulers",
		func(ctx context.Context) ([]appsv1.Deployment, error) {
			return kubeapi.InstalledDeployments(ctx, r.kube.AppsV1(), metav1.NamespaceAll)
		})
	if err = r.optional(err); err != nil {
		return err
	}
	leases, err := r.leases(ctx)
	if err = r.optional(err); err != nil {
		return err
	}
	known := map[string]bool{metav1.NamespaceSystem + "/" + defaultLease: true}
	for i := range deployments {
		if deployments[i].Labels[ownership.LabelName] == ownership.Extender {
			continue
		}
		if err := r.installed(ctx, &deployments[i], leases); err != nil {
			return err
		}
		known[deployments[i].Namespace+"/"+deployments[i].Name] = true
	}
	if err := r.optional(r.defaultScheduler(ctx)); err != nil {
		return err
	}
	for i := range leases {
		r.leaseHolder(&leases[i], known)
	}
	return nil
}

// defaultScheduler finds the default scheduler by its static pods and its lease. With
// --leader-elect=false it has no lease, and outside the cluster no pods.
func (r *reader) defaultScheduler(ctx context.Context) error {
	pods, err := kubeapi.Read(ctx, r.retry, "list the pods of default schedulers",
		func(ctx context.Context) ([]corev1.Pod, error) {
			return kubeapi.DefaultSchedulerPods(ctx, r.kube.CoreV1())
		})
	if err = r.optional(err); err != nil {
		return err
	}
	lease, err := kubeapi.Read(ctx, r.retry, "read the lease of the default scheduler",
		func(ctx context.Context) (*coordinationv1.Lease, error) {
			return kubeapi.DefaultLease(ctx, r.kube.CoordinationV1(), pods)
		})
	if err = r.optional(err); err != nil {
		return err
	}
	if s := describeDefault(pods, lease, r.in.Now); s != nil {
		r.in.Schedulers = append(r.in.Schedulers, *s)
	}
	return nil
}

// describeDefault describes the default scheduler with these static pods and this lease, or returns
// nil if there is neither.
func describeDefault(pods []corev1.Pod, lease *coordinationv1.Lease, now time.Time) *explain.Scheduler {
	s := &explain.Scheduler{Name: corev1.DefaultSchedulerName}
	var problems []string
	if lease != nil {
		s.Where = kubeapi.ObjectName("Lease", lease.Namespace, lease.Name)
		problems = append(problems, leaseProblem(lease, now))
	}
	ready := slices.IndexFunc(pods, func(pod corev1.Pod) bool { return podstatus.Ready(&pod) })
	if len(pods) > 0 {
		leader := kubeapi.PodOfHost(pods, kubeapi.HostOf(lease))
		if leader == nil {
			leader = &pods[max(0, ready)]
		}
		s.Where = kubeapi.ObjectName("Pod", leader.Namespace, leader.Name)
	}
	if len(pods) > 0 && ready < 0 {
		problems = append(problems, s.Where+" is not ready")
	}
	s.Problem = strings.Join(slices.DeleteFunc(problems, func(text string) bool { return text == "" }), ", ")
	if s.Where == "" {
		return nil
	}
	return s
}

// leases lists the schedulers' leases, by their name: in kube-system all leases, in other
// namespaces only those for the pod's scheduler.
func (r *reader) leases(ctx context.Context) ([]coordinationv1.Lease, error) {
	var found []coordinationv1.Lease
	add := func(namespace string, o metav1.ListOptions, wanted func(*coordinationv1.Lease) bool) error {
		for list, err := range pages(ctx, r, "leases", r.kube.CoordinationV1().Leases(namespace).List, o) {
			if err != nil {
				return err
			}
			for i := range list.Items {
				if wanted(&list.Items[i]) {
					found = append(found, list.Items[i])
				}
			}
		}
		return nil
	}
	name := r.in.Pod.Spec.SchedulerName
	err := add(metav1.NamespaceSystem, metav1.ListOptions{}, func(l *coordinationv1.Lease) bool {
		return l.Name == name || strings.Contains(l.Name, "scheduler")
	})
	return found, errors.Join(err, add(metav1.NamespaceAll, metav1.ListOptions{FieldSelector: "metadata.name=" + name},
		func(l *coordinationv1.Lease) bool {
			return l.Namespace != metav1.NamespaceSystem
		}))
}

// leaseHolder adds the scheduler that holds a lease, unless it is known. A lease is named after its
// scheduler.
func (r *reader) leaseHolder(lease *coordinationv1.Lease, known map[string]bool) {
	where := lease.Namespace + "/" + lease.Name
	if known[where] {
		return
	}
	r.in.Schedulers = append(r.in.Schedulers,
		explain.Scheduler{Name: lease.Name, Where: "Lease/" + where, Problem: leaseProblem(lease, r.in.Now)})
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

// installed adds a Deployment's schedulers: one for each profile in its configuration.
func (r *reader) installed(ctx context.Context, d *appsv1.Deployment, leases []coordinationv1.Lease) error {
	s := explain.Scheduler{Name: d.Name, Where: kubeapi.ObjectName("Deployment", d.Namespace, d.Name)}
	for i := range leases {
		if leases[i].Namespace == d.Namespace && leases[i].Name == d.Name {
			s.Problem = leaseProblem(&leases[i], r.in.Now)
		}
	}
	if d.Status.ReadyReplicas == 0 {
		s.Problem = strings.TrimSuffix(s.Where+" has no ready replica, "+s.Problem, ", ")
	}
	c, err := r.configuration(ctx, d.Namespace, &d.Spec.Template.Spec, d.Labels[ownership.LabelRelease])
	if err = r.optional(err); err != nil {
		return err
	}
	s.Plugins, s.Extenders = c.plugins, c.extenders
	if len(c.names) == 0 {
		c.names = []string{d.Name}
	}
	for _, s.Name = range c.names {
		r.in.Schedulers = append(r.in.Schedulers, s)
	}
	return nil
}

// Profiles returns the profile names in the configuration that a Deployment mounts.
func Profiles(ctx context.Context, kube kubernetes.Interface, retry *kubeapi.Retrier,
	d *appsv1.Deployment) ([]string, error) {
	r := &reader{kube: kube, retry: retry}
	c, err := r.configuration(ctx, d.Namespace, &d.Spec.Template.Spec, d.Labels[ownership.LabelRelease])
	return c.names, err
}

// configuration reads the configuration that a pod mounts. release is its scheduler's release, or
// empty if it is unknown.
func (r *reader) configuration(ctx context.Context, namespace string, pod *corev1.PodSpec,
	release string) (found configuration, err error) {
	for _, v := range pod.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		m, err := kubeapi.Find(ctx, r.retry, r.kube.CoreV1().ConfigMaps(namespace).Get, "ConfigMap", namespace,
			v.ConfigMap.Name)
		if err != nil {
			return found, err
		}
		if m == nil {
			continue
		}
		for _, text := range m.Data {
			if c := readConfiguration(text, release); len(c.names) > 0 {
				found = c
			}
		}
	}
	return found, nil
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
