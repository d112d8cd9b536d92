package observe

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// pageSize is the number of objects that are read at once.
const pageSize = 250

// read reads the Deployments and the names of the deployed revisions, then each workload's state.
func read(ctx context.Context, o Options) (*cluster, error) {
	found, err := kubeapi.InstalledDeployments(ctx, o.Kube.AppsV1(), metav1.NamespaceAll)
	if apierrors.IsForbidden(err) {
		found, err = kubeapi.InstalledDeployments(ctx, o.Kube.AppsV1(), o.Namespace)
	}
	if err != nil {
		return nil, kubeapi.Explain("list deployments", err)
	}
	deployed, err := o.Objects.DeployedNames(ctx, o.Namespace)
	// each workload's revisions are unreadable then, which it reports
	if err != nil && !errors.As(err, new(*kubeapi.ForbiddenError)) {
		return nil, err
	}
	c := &cluster{nodes: map[string]*corev1.Node{}}
	for i := range found {
		name := types.NamespacedName{Namespace: found[i].Namespace, Name: found[i].Labels[ownership.LabelInstance]}
		c.workloads = append(c.workloads, &workload{NamespacedName: name, live: &found[i]})
		if found[i].Labels[ownership.LabelName] == ownership.Extender {
			c.extenders = append(c.extenders, name.Name)
		}
	}
	for _, name := range deployed {
		if !slices.ContainsFunc(c.workloads, func(w *workload) bool { return w.NamespacedName == name }) {
			c.workloads = append(c.workloads, &workload{NamespacedName: name})
		}
	}
	c.workloads = slices.DeleteFunc(c.workloads, func(w *workload) bool { return o.Name != "" && w.Name != o.Name })
	slices.SortFunc(c.workloads, func(a, b *workload) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, w := range c.workloads {
		w.readRevisions(ctx, o)
		w.readMounts(ctx, o)
		w.readReplicas(ctx, o)
		w.readNodes(ctx, o, c)
		if w.kind == health.Extender {
			w.readService(ctx, o)
		} else {
			w.readScheduling(ctx, o)
			w.readRoute(ctx, o)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	if o.Name == "" {
		c.arbiter, c.unknown = readArbiter(ctx, o)
	}
	return c, nil
}

// readRevisions reads the revisions, and compares the cluster with the newest deployed one, unless
// a newer one is being deployed. Helm keeps the history of its own releases.
func (w *workload) readRevisions(ctx context.Context, o Options) {
	if w.live == nil || w.live.Labels[ownership.LabelManagedBy] != ownership.Helm {
		all, err := o.Objects.Revisions(ctx, w.Namespace, w.Name)
		if len(all) > 0 && all[len(all)-1].Status == apply.Pending {
			w.pending = &all[len(all)-1]
		}
		if last := apply.LastDeployed(all); last != nil {
			w.recorded, err = o.Objects.ReadRevision(ctx, *last)
		}
		w.undeployed = err == nil && w.recorded == nil
		if w.recorded != nil && w.recorded.Damage == nil && w.pending == nil {
			w.comparisons, err = o.Objects.Compare(ctx, w.recorded.Objects)
		}
		w.requests = append(w.requests, request{"compare with the deployed revision", err})
	}
	w.deployment, w.kind, w.app = w.live, health.Scheduler, ownership.Scheduler
	if w.live == nil && w.recorded != nil {
		w.deployment = recordedDeployment(w.recorded)
	}
	if w.deployment != nil && w.deployment.Labels[ownership.LabelName] == ownership.Extender {
		w.kind, w.app = health.Extender, ownership.Extender
	}
	w.who = (&health.Workload{Kind: w.kind, Name: w.Name, Namespace: w.Namespace}).String()
}

// readMounts reads the ConfigMaps and Secrets that the pods mount: the configuration, and a
// scheduler's credentials.
func (w *workload) readMounts(ctx context.Context, o Options) {
	if w.live == nil {
		return
	}
	objects := []runtime.Object{w.live}
	w.live.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	for _, volume := range w.live.Spec.Template.Spec.Volumes {
		var object runtime.Object
		var err error
		kind := "Secret"
		switch {
		case volume.Secret != nil:
			object, err = o.Kube.CoreV1().Secrets(w.Namespace).Get(ctx, volume.Secret.SecretName, metav1.GetOptions{})
		case volume.ConfigMap != nil:
			kind = "ConfigMap"
			object, err = o.Kube.CoreV1().ConfigMaps(w.Namespace).Get(ctx, volume.ConfigMap.Name, metav1.GetOptions{})
		default:
			continue
		}
		if err == nil {
			object.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
			objects = append(objects, object)
		} else if !apierrors.IsNotFound(err) { // a missing object is drift
			w.requests = append(w.requests, request{"read volume " + volume.Name + " of " + w.who, err})
		}
	}
	for _, object := range objects {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		w.mounted = append(w.mounted, &unstructured.Unstructured{Object: fields})
		w.requests = append(w.requests, request{"decode the volumes of " + w.who, err})
	}
	if w.kind == health.Extender {
		return
	}
	if text, err := manifest.Configuration(w.mounted, w.Name); err == nil {
		w.configuration, _ = profiles.Summarize(text)
	}
	var err error
	w.credentials, err = deploy.DescribeCredentials(w.mounted, w.Namespace, w.Name, o.ReadFile)
	w.requests = append(w.requests, request{"read the credentials of " + w.who, err})
}

// readReplicas reads the pods, and the warnings about them and about the Deployment.
func (w *workload) readReplicas(ctx context.Context, o Options) {
	selector := ownership.LabelName + "=" + w.app + "," + ownership.LabelInstance + "=" + w.Name
	options := metav1.ListOptions{LabelSelector: selector, Limit: pageSize}
	w.pods = []corev1.Pod{}
	for page, err := range kubeapi.Pages(ctx, o.Kube.CoreV1().Pods(w.Namespace).List, options) {
		if err != nil {
			w.requests = append(w.requests, request{"list pods of " + w.who, err})
			w.pods = nil // a part of them would look as if the others did not exist
			break
		}
		w.pods = append(w.pods, page.Items...)
	}
	slices.SortFunc(w.pods, func(a, b corev1.Pod) int {
		return strings.Compare(a.Spec.NodeName+"/"+a.Name, b.Spec.NodeName+"/"+b.Name)
	})
	var ids []types.UID
	if w.live != nil {
		ids = append(ids, w.live.UID)
	}
	for i := range w.pods {
		ids = append(ids, w.pods[i].UID)
	}
	for _, id := range ids {
		options := metav1.ListOptions{Limit: pageSize,
			FieldSelector: "type=" + corev1.EventTypeWarning + ",involvedObject.uid=" + string(id)}
		for page, err := range kubeapi.Pages(ctx, o.Kube.CoreV1().Events(w.Namespace).List, options) {
			if err != nil {
				w.requests = append(w.requests, request{"list events of " + w.who, err})
				return
			}
			w.events = append(w.events, page.Items...)
		}
	}
}

// readNodes reads the pods' nodes and, for credentials that were copied from a node, the
// control-plane nodes: each once for all workloads. PMK sets the old label on every release.
func (w *workload) readNodes(ctx context.Context, o Options, c *cluster) {
	for i := range w.pods {
		name := w.pods[i].Spec.NodeName
		if c.nodes[name] != nil || name == "" {
			continue
		}
		node, err := o.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			c.nodes[name] = &corev1.Node{}
		case err != nil:
			w.requests = append(w.requests, request{"read Node/" + name, err})
		default:
			c.nodes[name] = node
		}
	}
	if c.controlPlane != nil || !w.copiesNode() {
		return
	}
	nodes := []corev1.Node{}
	for _, label := range kubeapi.ControlPlaneLabels() {
		options := metav1.ListOptions{LabelSelector: label, Limit: pageSize}
		for page, err := range kubeapi.Pages(ctx, o.Kube.CoreV1().Nodes().List, options) {
			if err != nil {
				w.requests = append(w.requests, request{"list control-plane nodes", err})
				return
			}
			nodes = append(nodes, page.Items...)
		}
	}
	c.controlPlane = nodes
}

// readScheduling reads the pods that wait for a scheduler, its leader and its metrics.
func (w *workload) readScheduling(ctx context.Context, o Options) {
	var err error
	for range 2 { // the list may expire between two pages
		if w.waiting, err = w.countWaiting(ctx, o); !apierrors.IsResourceExpired(err) {
			break
		}
	}
	w.requests = append(w.requests, request{"list the pods that wait for " + w.who, err})
	if elect := w.configuration.LeaderElect; elect == nil || *elect {
		lease, err := o.Kube.CoordinationV1().Leases(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			w.lease = &coordinationv1.Lease{}
		case err != nil:
			w.requests = append(w.requests, request{"read Lease/" + w.Namespace + "/" + w.Name, err})
		default:
			w.lease = lease
			w.leader, err = kubeapi.PodOfLeader(ctx, o.Kube, lease, w.pods, ownership.Scheduler)
			w.requests = append(w.requests, request{"find the leader of " + w.who, err})
		}
	}
	port := w.port()
	for i := range w.pods {
		if port != 0 && podstatus.Ready(&w.pods[i]) {
			text, err := o.Metrics.Read(ctx, &w.pods[i], port)
			w.metrics = append(w.metrics, podMetrics{w.pods[i].Name, text, err})
		}
	}
}

// countWaiting counts the pods that name the scheduler, or another profile of it, and are not
// bound. It counts each page instead of keeping it: there may be thousands of pods.
func (w *workload) countWaiting(ctx context.Context, o Options) (*health.Waiting, error) {
	counted := &health.Waiting{}
	names := append([]string{w.Name}, w.configuration.Profiles...)
	for i, name := range names {
		if name == "" || slices.Contains(names[:i], name) {
			continue
		}
		options := metav1.ListOptions{FieldSelector: "spec.schedulerName=" + name + ",spec.nodeName=,status.phase=" +
			string(corev1.PodPending), Limit: pageSize}
		for page, err := range kubeapi.Pages(ctx, o.Kube.CoreV1().Pods(metav1.NamespaceAll).List, options) {
			if err != nil {
				return nil, err
			}
			addWaiting(counted, page.Items)
		}
	}
	return counted, nil
}
