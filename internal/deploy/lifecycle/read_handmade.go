package lifecycle

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
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
	workload, err := h.get(ctx,
		handmade.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: name})
	switch {
	case err != nil:
		return nil, err
	case workload == nil:
		return nil, problem.Invalidf("choose the namespace with -n", "there is no Deployment %s in namespace %s", name, namespace)
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
	return found, err
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
