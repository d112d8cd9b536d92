// Package observe reads the schedulers and extenders of a cluster for package health.
package observe

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/internal/deploy/verify"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Objects reads the deployed revisions, and compares them with the live objects.
type Objects interface {
	DeployedNames(ctx context.Context, ns string) ([]types.NamespacedName, error)
	AllRevisions(ctx context.Context, ns, name string) ([]*apply.Revision, error)
	Compare(ctx context.Context, objs []*unstructured.Unstructured) ([]apply.Comparison, error)
}

// Options are the workloads to read, and the clients to read them with.
type Options struct {
	// Name, if set, is the only scheduler or extender to read. Namespace is where to look without
	// permission to list all namespaces.
	Name, Namespace string
	// Release is the release of the API server.
	Release versions.Release
	Kube    kubernetes.Interface
	Objects Objects
	// Answers returns an error unless the API server reaches one of the ready pods of an extender.
	Answers func(ctx context.Context, name, namespace string) error
	Metrics kubeapi.Metrics
	// ReadFile reads a kubeconfig of this node. It is nil if this is not a control-plane node.
	ReadFile deploy.ReadNodeFile
}

// RequestTimeout bounds one request, so that a silent API server is noticed soon.
const RequestTimeout = 10 * time.Second

// Cluster reads the schedulers and extenders of a cluster or, with a name, only that one. release
// is the release of the API server.
func Cluster(
	ctx context.Context, s *session.Session, cfg *rest.Config, release versions.Release, name, namespace string,
) (_ *Result, err error) {
	short := rest.CopyConfig(cfg)
	short.Timeout = RequestTimeout
	o := Options{
		Name: name, Namespace: namespace, Release: release,
		Answers: func(ctx context.Context, name, namespace string) error {
			return verify.ExtenderAnswers(ctx, cfg, name, namespace, manifest.ExtenderPort, s.Log)
		},
	}
	if o.ReadFile, err = deploy.NodeFileReader(s); err != nil {
		return nil, err
	}
	if o.Kube, err = kubernetes.NewForConfig(short); err != nil {
		return nil, err
	}
	o.Metrics = Metrics(cfg, o.Kube)
	if o.Objects, err = apply.New(short, apply.Options{Log: s.Log, Patience: RequestTimeout}); err != nil {
		return nil, err
	}
	found, err := Run(ctx, o)
	if err != nil {
		return nil, kubeapi.Explain("read schedulers and extenders", err)
	}
	if name != "" && len(found.Schedulers)+len(found.Extenders) == 0 {
		return nil, problem.Invalidf("`pmk-sched status` lists those that are deployed",
			"no scheduler or extender %s is deployed", name)
	}
	return found, nil
}

// Metrics returns how to read the metrics of schedulers and extenders.
func Metrics(cfg *rest.Config, kube kubernetes.Interface) kubeapi.Metrics {
	return kubeapi.Metrics{
		Pods: kube.CoreV1(), Machine: inspect.MachineNames(),
		Local: func(ctx context.Context, port int) (string, error) { return verify.MetricsAt(ctx, cfg, port) },
	}
}

// Result are the schedulers and extenders, by namespace and name.
type Result struct {
	Schedulers, Extenders []*health.Workload
}

// Run reads the schedulers and extenders that pmk-sched, or Helm from a chart of pmk-sched,
// installed. If a part of one of them cannot be read, the reason is in its field Unknown.
func Run(ctx context.Context, o Options) (*Result, error) {
	ob := &observer{Options: o, nodes: map[string]string{}}
	if err := ob.find(ctx); err != nil {
		return nil, err
	}
	result := &Result{Schedulers: []*health.Workload{}, Extenders: []*health.Workload{}} // lists in JSON too
	for _, t := range ob.targets {
		if o.Name != "" && t.name.Name != o.Name {
			continue
		}
		w := ob.workload(ctx, t)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if w.Kind == health.Extender {
			result.Extenders = append(result.Extenders, w)
		} else {
			result.Schedulers = append(result.Schedulers, w)
		}
	}
	return result, nil
}

// target is a scheduler or an extender that exists or was deployed.
type target struct {
	name types.NamespacedName
	// live is nil if its Deployment does not exist.
	live *appsv1.Deployment
}

// observer reads one cluster.
type observer struct {
	Options
	targets []*target
	// nodes caches the problem of each node. It is "" if the node has none.
	nodes map[string]string
	// controlPlane maps each control-plane node to its names and addresses. It is nil until they
	// are read.
	controlPlane map[string][]string
}

// find lists the targets: the Deployments, and deployed revisions without a Deployment.
func (ob *observer) find(ctx context.Context) error {
	found, err := kubeapi.InstalledDeployments(ctx, ob.Kube.AppsV1(), metav1.NamespaceAll)
	if apierrors.IsForbidden(err) {
		found, err = kubeapi.InstalledDeployments(ctx, ob.Kube.AppsV1(), ob.Namespace)
	}
	if err != nil {
		return kubeapi.Explain("list deployments", err)
	}
	for i := range found {
		ob.targets = append(ob.targets,
			&target{name: types.NamespacedName{Namespace: found[i].Namespace, Name: found[i].Labels[ownership.LabelInstance]},
				live: &found[i]})
	}
	deployed, err := ob.Objects.DeployedNames(ctx, ob.Namespace)
	// the revisions of each are unreadable then, which it reports
	if err != nil && !errors.As(err, new(*kubeapi.ForbiddenError)) {
		return err
	}
	for _, name := range deployed {
		if !slices.ContainsFunc(ob.targets, func(t *target) bool { return t.name == name }) {
			ob.targets = append(ob.targets, &target{name: name})
		}
	}
	slices.SortFunc(ob.targets, func(a, b *target) int {
		return cmp.Or(cmp.Compare(a.name.Namespace, b.name.Namespace), cmp.Compare(a.name.Name, b.name.Name))
	})
	return nil
}

// reading is one workload while it is read.
type reading struct {
	*observer
	*health.Workload
	// recorded is the newest deployed revision, live the Deployment, pods its pods; each may be
	// missing.
	recorded *apply.Revision
	live     *appsv1.Deployment
	pods     []corev1.Pod
	// leads is the pod that holds the lease, or nil.
	leads *corev1.Pod
	// mounted are the Deployment, and the Secrets and ConfigMaps that its pods mount.
	mounted []*unstructured.Unstructured
}

// workload reads one scheduler or extender.
func (ob *observer) workload(ctx context.Context, t *target) *health.Workload {
	w := &health.Workload{Kind: health.Scheduler, Name: t.name.Name, Namespace: t.name.Namespace,
		InstalledBy: ownership.Manager, Replicas: []health.Replica{}}
	r := &reading{observer: ob, Workload: w, live: t.live}
	r.try(r.revisions(ctx))
	r.describe()
	r.try(r.readMounts(ctx))
	r.try(r.readPods(ctx))
	if w.Kind == health.Extender {
		r.try(r.service(ctx))
		r.reachable(ctx)
	} else {
		r.try(r.lease(ctx))
		r.try(r.waiting(ctx))
		r.metrics(ctx)
		r.leader()
		r.calls()
	}
	r.try(r.events(ctx))
	return w
}

// try records why something is unknown.
func (r *reading) try(err error) {
	if err != nil && !slices.Contains(r.Unknown, err.Error()) {
		r.Unknown = append(r.Unknown, err.Error())
	}
}

// describe reads the labels and containers of the Deployment, or, if it does not exist, of the
// recorded Deployment.
func (r *reading) describe() {
	d := r.live
	if d == nil && r.recorded != nil {
		d = recordedDeployment(r.recorded)
	}
	if d == nil {
		return
	}
	if d.Labels[ownership.LabelName] == ownership.Extender {
		r.Kind = health.Extender
	}
	if d.Labels[ownership.LabelManagedBy] == ownership.Helm {
		r.InstalledBy = ownership.Helm
	}
	if r.Wanted = 1; d.Spec.Replicas != nil {
		r.Wanted = *d.Spec.Replicas
	}
	if r.live != nil {
		r.Ready = d.Status.ReadyReplicas
	}
	if c := r.container(d); c != nil {
		r.Image = c.Image
	}
	if r.Kind == health.Extender {
		return
	}
	release, err := versions.FromServer(d.Labels[ownership.LabelRelease])
	if err != nil {
		r.try(errors.New("its release is unknown"))
		return
	}
	r.Release = release.String()
	if release.MinorString() != r.observer.Release.MinorString() {
		r.Server = r.observer.Release.String()
	}
}

// container returns the container of the scheduler or extender.
func (r *reading) container(d *appsv1.Deployment) *corev1.Container {
	name := ownership.Scheduler
	if r.Kind == health.Extender {
		name = ownership.Extender
	}
	for i := range d.Spec.Template.Spec.Containers {
		if c := &d.Spec.Template.Spec.Containers[i]; c.Name == name {
			return c
		}
	}
	return nil
}

// maxEvents is how many of the last events are kept.
const maxEvents = 5

// events reads the last warnings about the pods and the Deployment.
func (r *reading) events(ctx context.Context) error {
	var ids []types.UID
	if r.live != nil {
		ids = append(ids, r.live.UID)
	}
	for i := range r.pods {
		ids = append(ids, r.pods[i].UID)
	}
	for _, id := range ids {
		options := metav1.ListOptions{FieldSelector: "type=" + corev1.EventTypeWarning + ",involvedObject.uid=" + string(id),
			Limit: pageSize}
		for list, err := range kubeapi.Pages(ctx, r.Kube.CoreV1().Events(r.Workload.Namespace).List, options) {
			if err != nil {
				return kubeapi.Explain("list events of "+r.String(), err)
			}
			for i := range list.Items {
				e := &list.Items[i]
				r.Events = append(r.Events, health.Event{
					Time: kubeapi.EventTime(e).UTC(), Type: e.Type, Object: e.InvolvedObject.Kind + "/" +
						e.InvolvedObject.Name, Reason: e.Reason, Message: e.Message, Count: e.Count,
				})
			}
		}
	}
	slices.SortStableFunc(r.Events, func(a, b health.Event) int { return a.Time.Compare(b.Time) })
	r.Events = r.Events[max(0, len(r.Events)-maxEvents):]
	return nil
}

// pageSize is how many objects are read at once.
const pageSize = 250

// since returns a time of an object as UTC, which the zero time is not changed by.
func since(t metav1.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}
