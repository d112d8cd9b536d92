package observe

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// revisions compares the cluster with the newest deployed revision, unless a newer one is being
// deployed.
func (r *reading) revisions(ctx context.Context) error {
	if r.live != nil && r.live.Labels[ownership.LabelManagedBy] == ownership.Helm {
		return nil // Helm keeps the history of its releases
	}
	all, err := r.Objects.AllRevisions(ctx, r.Namespace, r.Name)
	if err != nil {
		return err
	}
	if len(all) > 0 {
		if last := all[len(all)-1]; last.Status == apply.Pending {
			r.Unfinished = &health.Unfinished{Revision: last.Number, Since: last.Created.UTC(), By: last.By}
		}
	}
	if r.recorded = apply.LastDeployed(all); r.recorded == nil {
		return fmt.Errorf("%s has no deployed revision to compare with", r.Workload)
	}
	r.Revision = r.recorded.Number
	switch {
	case r.recorded.Damage != nil:
		return r.recorded.Damage
	case r.Unfinished != nil:
		return nil
	}
	list, err := r.Objects.Compare(ctx, r.recorded.Objects)
	for _, c := range list {
		r.addDrift(c)
	}
	return err
}

func (r *reading) addDrift(c apply.Comparison) {
	d := health.ObjectDrift{Object: c.Object, Foreign: c.Foreign}
	switch {
	case c.Err != nil:
		r.try(fmt.Errorf("compare %s with revision %d: %w", c.Object, r.Revision, c.Err))
		return
	case c.Foreign:
	case c.Action == apply.Unchanged:
		return
	case c.Live == nil:
		d.Missing = true
	default:
		if d.Fields = health.CompareFields(c.Live, c.Applied); len(d.Fields) == 0 {
			return
		}
	}
	r.Drift = append(r.Drift, d)
}

// recordedDeployment returns the Deployment of a revision, or nil.
func recordedDeployment(revision *apply.Revision) *appsv1.Deployment {
	for _, o := range revision.Objects {
		var d appsv1.Deployment
		if o.GetKind() == "Deployment" && runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d) == nil {
			return &d
		}
	}
	return nil
}

// readMounts reads the ConfigMaps and Secrets that the pods mount: the credentials, their expiry,
// and the API server that the replicas use.
func (r *reading) readMounts(ctx context.Context) error {
	if r.live == nil {
		return nil
	}
	if err := r.mount(r.live, "apps/v1", "Deployment"); err != nil {
		return err
	}
	core := r.Kube.CoreV1()
	for _, volume := range r.live.Spec.Template.Spec.Volumes {
		var err error
		switch {
		case volume.Secret != nil:
			var secret *corev1.Secret
			if secret, err = core.Secrets(r.live.Namespace).Get(ctx, volume.Secret.SecretName, metav1.GetOptions{}); err == nil {
				err = r.mount(secret, "v1", "Secret")
			}
		case volume.ConfigMap != nil:
			var configMap *corev1.ConfigMap
			if configMap, err = core.ConfigMaps(r.live.Namespace).Get(ctx, volume.ConfigMap.Name,
				metav1.GetOptions{}); err == nil {
				err = r.mount(configMap, "v1", "ConfigMap")
			}
		}
		if err != nil && !apierrors.IsNotFound(err) { // that it is missing is drift
			r.try(kubeapi.Explain("read volume "+volume.Name+" of "+r.String(), err))
		}
	}
	first, err := inspect.FirstToExpire(r.mounted)
	if err != nil {
		return err
	}
	if first != nil {
		r.Certificate = &health.Certificate{Object: first.Object, Subject: first.Subject, Expires: first.Expires}
	}
	if r.Kind == health.Extender {
		return nil
	}
	return r.credentials(ctx)
}

// mount adds an object to the mounted objects.
func (r *reading) mount(typed runtime.Object, apiVersion, kind string) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return fmt.Errorf("read %s of %s: %w", kind, r.String(), err)
	}
	o := &unstructured.Unstructured{Object: fields}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	r.mounted = append(r.mounted, o)
	return nil
}

// credentials describes the credentials of a scheduler, with a certificate in a file of the node.
func (r *reading) credentials(ctx context.Context) error {
	report, err := deploy.DescribeCredentials(r.mounted, r.live.Namespace, r.Name, r.ReadFile)
	if err != nil {
		return err
	}
	r.Credentials = &health.Credentials{Mode: report.Mode, Subject: report.Subject, Source: report.Source,
		Renewal: report.Renewal, Expires: report.Expires}
	if report.Expires != nil && (r.Certificate == nil || report.Expires.Before(r.Certificate.Expires)) {
		r.Certificate = &health.Certificate{Object: report.Source, Subject: report.Subject, Expires: *report.Expires}
	}
	if report.Mode != deploy.CredentialsNode && report.Mode != deploy.CredentialsNodeInline {
		return nil
	}
	server, err := url.Parse(report.Server)
	if err != nil {
		return fmt.Errorf("read the address of the API server of %s: %w", r.String(), err)
	}
	nodes, err := r.controlPlaneNodes(ctx)
	if err != nil || len(nodes) < 2 {
		return err
	}
	for node, names := range nodes {
		if slices.Contains(names, server.Hostname()) {
			r.DependsOn = node
		}
	}
	return nil
}

// controlPlaneNodes returns the names and addresses of each control-plane node. PMK sets the old
// label on every release.
func (ob *observer) controlPlaneNodes(ctx context.Context) (map[string][]string, error) {
	if ob.controlPlane != nil {
		return ob.controlPlane, nil
	}
	found := map[string][]string{}
	for _, label := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"} {
		options := metav1.ListOptions{LabelSelector: label, Limit: pageSize}
		for list, err := range kubeapi.Pages(ctx, ob.Kube.CoreV1().Nodes().List, options) {
			if err != nil {
				return nil, kubeapi.Explain("list control-plane nodes", err)
			}
			for i := range list.Items {
				node := &list.Items[i]
				names := []string{node.Name}
				for _, address := range node.Status.Addresses {
					names = append(names, address.Address)
				}
				found[node.Name] = names
			}
		}
	}
	ob.controlPlane = found
	return found, nil
}

// configuration summarizes the scheduler's configuration; the summary is empty if it is not
// mounted.
func (r *reading) configuration() profiles.Summary {
	for _, o := range r.mounted {
		text, _, _ := unstructured.NestedString(o.Object, "data", r.Name+".yaml")
		if found, ok := profiles.Summarize([]byte(text)); ok && o.GetKind() == "ConfigMap" {
			return found
		}
	}
	return profiles.Summary{}
}

// calls lists the extenders that the scheduler calls, and the extenders with a Service that are
// not deployed. Without a revision only sidecars are known.
func (r *reading) calls() {
	if r.recorded == nil {
		if r.live != nil {
			r.Calls = manifest.Sidecars(r.live)
		}
		return
	}
	wirings, err := deploy.WiringsOf(r.recorded)
	r.try(err)
	for _, w := range wirings {
		name := w.Extender.Name
		if r.Calls = append(r.Calls, name); w.Sidecar != nil {
			continue
		}
		deployed := slices.ContainsFunc(r.targets, func(t *target) bool {
			return t.name.Name == name && t.live != nil && t.live.Labels[ownership.LabelName] == ownership.Extender
		})
		if !deployed {
			r.Missing = append(r.Missing, name)
		}
	}
}
