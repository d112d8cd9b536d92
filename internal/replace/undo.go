package replace

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
)

const rbacVersion = "rbac.authorization.k8s.io/v1"

func (d Deps) swapper(single bool) staticpod.Swapper {
	return staticpod.Swapper{Files: d.Files, SingleFile: single}
}

// tidy removes staged files from killed runs.
func (d Deps) tidy(layout inspect.Layout) error {
	err := d.swapper(layout.SingleFile).Tidy(layout.Manifest)
	if layout.EnvFile != "" {
		err = errors.Join(err, d.swapper(false).Tidy(layout.EnvFile))
	}
	return err
}

// swapBack restores the previous manifest first, without the API server, which may be down because
// of the new one; then it waits until the former scheduler is ready again. That manifest is also
// restored if a killed run wrote the present one.
func (r *replaceRun) swapBack(ctx context.Context, _ error) error {
	current, previous, err := r.toRevert(r.manifest)
	if err != nil || current == nil {
		return r.manifest.unlessEdited(err)
	}
	want := staticpod.Want{Replacement: staticpod.Replacement(previous.Data), Changed: true, Pinned: r.plan.Pinned,
		Settle: restoreSettle}
	if !r.apiAway {
		if want.Before, err = r.watch(r.plan.Target).Observe(ctx); err != nil {
			want.Before = nil
		}
	}
	if err := r.manifest.revert(current, previous); err != nil {
		return err
	}
	if before := want.Before; before == nil || before.Replacement != staticpod.Replacement(current.Data) {
		// The kubelet may not have read the current manifest at all.
		want.Changed, want.Before = false, nil
	}
	if r.ran != nil {
		want.Others(r.ran.ContainerID)
	}
	ctx, cancel := context.WithTimeout(ctx, restoreTimeout)
	defer cancel()
	_, err = r.watch(r.plan.Target).Wait(ctx, want)
	r.reverted = err == nil
	return err
}

// removeStaleConfigurations removes the configurations that neither the manifest nor the node
// agent's settings name, and their directory if it is empty and managed by pmk-sched.
func (d Deps) removeStaleConfigurations(layout inspect.Layout) error {
	named, err := d.Files.Read(layout.Manifest)
	if err != nil {
		return err
	}
	text := string(named.Data)
	if layout.EnvFile != "" {
		settings, err := d.Files.Read(layout.EnvFile)
		switch {
		case err == nil:
			text += string(settings.Data)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	at, err := d.Files.Resolve(layout.ConfigDir)
	if err != nil {
		return err
	}
	found, err := filepath.Glob(filepath.Join(at, configStem+"*.yaml"))
	for _, name := range found {
		if base := filepath.Base(name); !strings.Contains(text, base) {
			err = errors.Join(err, d.Files.Remove(path.Join(layout.ConfigDir, base)))
		}
	}
	if layout.ConfigDir == inspect.ManagedConfigDir {
		d.Files.RemoveEmpty(layout.ConfigDir)
	}
	return err
}

// deleteObjects deletes the plugins' permissions and the Policy, unless another node's scheduler is
// replaced too.
func (d Deps) deleteObjects(ctx context.Context, pod string) error {
	pods, err := d.schedulerPods(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(pods,
		func(p corev1.Pod) bool { return p.Name != pod && p.Annotations[staticpod.AnnotationReplacement] != "" }) {
		return nil
	}
	policies, err := d.stalePolicies(ctx)
	if err != nil {
		return err
	}
	role := corev1.DefaultSchedulerName + "-plugins"
	stale := []*unstructured.Unstructured{reference(rbacVersion, "ClusterRoleBinding", "", role),
		reference(rbacVersion, "ClusterRole", "", role)}
	_, err = d.Applier.Delete(ctx, append(stale, policies...))
	return err
}

// reference returns an object to delete, with the labels that mark it as managed.
func reference(version, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(version)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetLabels(ownership.Labels(corev1.DefaultSchedulerName))
	return o
}

// schedulerPods returns the mirror pods with a default scheduler in them.
func (d Deps) schedulerPods(ctx context.Context) ([]corev1.Pod, error) {
	pods, err := kubeapi.DefaultSchedulerPods(ctx, d.Kube.CoreV1())
	if err != nil {
		return nil, kubeapi.Explain("list the pods of default schedulers", err)
	}
	return pods, nil
}
