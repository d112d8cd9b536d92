package lifecycle

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy/handmade"
)

// ReadHandmade reads a second scheduler on the cluster that pmk-sched does not manage: its
// Deployment, what that mounts, its ServiceAccount, and the roles that are bound to it.
func ReadHandmade(ctx context.Context, s *session.Session, namespace, name string) (*handmade.Scheduler, error) {
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	h, err := newHandmadeObjects(s, cfg)
	if err != nil {
		return nil, err
	}
	workload, err := h.get(ctx, deploymentOf(namespace, name))
	switch {
	case err != nil:
		return nil, err
	case workload == nil:
		return nil, problem.Invalidf(h.others(ctx), "there is no Deployment %s in namespace %s", name, namespace)
	case ownership.IsInstalled(workload.GetLabels()):
		return nil, problem.Invalidf("see `pmk-sched status`", "Deployment %s/%s is managed by pmk-sched already", namespace, name)
	}
	objects, err := h.around(ctx, workload)
	if err != nil {
		return nil, err
	}
	text, err := manifestOf(objects)
	if err != nil {
		return nil, err
	}
	origin := "Deployment " + namespace + "/" + name
	found, err := handmade.Read(origin, text)
	if err == nil && found == nil {
		err = problem.Invalidf("name the Deployment of a scheduler", "%s does not run kube-scheduler", origin)
	}
	if err == nil {
		found.Places = nil // the user has no file with these lines
	}
	return found, err
}

func deploymentOf(namespace, name string) handmade.Object {
	return handmade.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: name}
}

// others returns a hint that lists the Deployments of schedulers that pmk-sched does not manage.
func (h *handmadeObjects) others(ctx context.Context) string {
	const otherwise = "choose the namespace with -n"
	all, err := h.list(ctx, "apps/v1", "Deployment", "")
	if err != nil {
		return otherwise
	}
	var names []string
	for i := range all {
		if ownership.IsInstalled(all[i].GetLabels()) || !runsScheduler(&all[i]) {
			continue
		}
		name := "--live " + all[i].GetName()
		if namespace := all[i].GetNamespace(); namespace != metav1.NamespaceSystem {
			name = "-n " + namespace + " " + name
		}
		names = append(names, name)
	}
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return "no Deployment on the cluster runs a kube-scheduler that pmk-sched does not manage"
	case len(names) > maxHinted:
		names = append(names[:maxHinted], "…")
	}
	return "Deployments of schedulers: " + strings.Join(names, ", ")
}

// runsScheduler reports whether a Deployment runs kube-scheduler.
func runsScheduler(o *unstructured.Unstructured) bool {
	var d appsv1.Deployment
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d)
	return err == nil && handmade.RunsScheduler(d.Spec.Template.Spec)
}

// around returns a workload after the objects that it needs.
func (h *handmadeObjects) around(
	ctx context.Context, workload *unstructured.Unstructured,
) (objectList, error) {
	var deployment appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(workload.Object, &deployment); err != nil {
		return nil, fmt.Errorf("read %s: %w", nameOf(workload), err)
	}
	pod := deployment.Spec.Template.Spec
	namespace, account := workload.GetNamespace(), cmp.Or(pod.ServiceAccountName, "default")
	wanted := []handmade.Object{{APIVersion: "v1", Kind: "ServiceAccount", Namespace: namespace, Name: account}}
	for _, v := range pod.Volumes {
		if v.ConfigMap != nil {
			wanted = append(wanted,
				handmade.Object{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: v.ConfigMap.Name})
		}
	}
	var objects objectList
	bound, err := h.bindings(ctx, namespace, account)
	if err != nil {
		return nil, err
	}
	for _, binding := range bound {
		objects = append(objects, creatable(binding))
		kind, _, _ := unstructured.NestedString(binding.Object, "roleRef", "kind")
		name, _, _ := unstructured.NestedString(binding.Object, "roleRef", "name")
		wanted = append(wanted,
			handmade.Object{APIVersion: rbacVersion, Kind: kind, Namespace: binding.GetNamespace(), Name: name})
	}
	for _, o := range wanted {
		found, err := h.get(ctx, o)
		if err != nil {
			return nil, err
		}
		if found != nil {
			objects = append(objects, creatable(found))
		}
	}
	return append(objects, creatable(workload)), nil
}

const rbacVersion = "rbac.authorization.k8s.io/v1"

// withoutSharedRoles returns former without the roles that other bindings name.
func (h *handmadeObjects) withoutSharedRoles(ctx context.Context, former objectList) (objectList, error) {
	isRole := func(o *unstructured.Unstructured) bool { return o.GetKind() == "ClusterRole" || o.GetKind() == "Role" }
	if !slices.ContainsFunc(former, isRole) {
		return former, nil
	}
	used := map[handmade.Object]bool{}
	for _, kind := range []string{"ClusterRoleBinding", "RoleBinding"} {
		all, err := h.list(ctx, rbacVersion, kind, "")
		if err != nil {
			return nil, err
		}
		for i := range all {
			all[i].SetKind(kind)
			if !slices.ContainsFunc(former, func(o *unstructured.Unstructured) bool {
				return o.GetKind() == kind && o.GetName() == all[i].GetName() && o.GetNamespace() == all[i].GetNamespace()
			}) {
				used[roleOf(&all[i])] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(former), func(o *unstructured.Unstructured) bool {
		return used[handmade.Object{Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()}]
	}), nil
}

// roleOf returns the kind, the namespace and the name of a binding's role.
func roleOf(binding *unstructured.Unstructured) handmade.Object {
	kind, _, _ := unstructured.NestedString(binding.Object, "roleRef", "kind")
	name, _, _ := unstructured.NestedString(binding.Object, "roleRef", "name")
	if kind == "ClusterRole" {
		return handmade.Object{Kind: kind, Name: name}
	}
	return handmade.Object{Kind: kind, Namespace: binding.GetNamespace(), Name: name}
}

// bindings returns the bindings of a ServiceAccount.
func (h *handmadeObjects) bindings(ctx context.Context, namespace, account string) (found objectList, err error) {
	for _, kind := range []string{"ClusterRoleBinding", "RoleBinding"} {
		all, err := h.list(ctx, rbacVersion, kind, "")
		if err != nil {
			return nil, err
		}
		for i := range all {
			subjects, _, _ := unstructured.NestedSlice(all[i].Object, "subjects")
			if slices.ContainsFunc(subjects, func(subject any) bool {
				s, _ := subject.(map[string]any)
				return s["kind"] == "ServiceAccount" && s["name"] == account && s["namespace"] == namespace
			}) {
				all[i].SetAPIVersion(rbacVersion)
				all[i].SetKind(kind)
				found = append(found, &all[i])
			}
		}
	}
	return found, nil
}
