package replace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/cluster"
	"github.com/pmk-sched/pmk-sched/internal/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/ownership"
	"github.com/pmk-sched/pmk-sched/internal/staticpod"
)

const rbacVersion = "rbac.authorization.k8s.io/v1"

func (d Deps) swapper(single bool) staticpod.Swapper {
	return staticpod.Swapper{Files: d.Files, SingleFile: single}
}

// swapBack restores the previous manifest first, without the API server, which may be down because of the new one; then it waits until the
// former scheduler is ready again.
func (r *replaceRun) swapBack(ctx context.Context, _ error) error {
	if !r.swapped {
		return nil
	}
	name := r.plan.Layout.Manifest
	previous, err := r.backup.Load(r.backup.Manifest(), staticpod.PreviousCopy)
	if err != nil {
		return err
	}
	current, err := r.Files.Read(name)
	if err != nil {
		return err
	}
	switch {
	case bytes.Equal(current.Data, previous.Data):
		r.swapped = false // the swap failed before the rename
		return nil
	case !bytes.Equal(current.Data, r.plan.New.Data):
		return fmt.Errorf("restore %s: %w", name, staticpod.ErrEdited)
	}
	want := staticpod.Want{Replacement: staticpod.Replacement(previous.Data), Changed: true, Pinned: r.plan.Pinned, Settle: restoreSettle}
	if !r.apiAway {
		if want.Before, err = r.watch(r.plan.Target).Look(ctx); err != nil {
			want.Before = nil
		}
	}
	if err := r.swapper(r.plan.Layout.SingleFile).Swap(name, current.Data, previous); err != nil {
		return err
	}
	if before := want.Before; before == nil || before.Replacement != r.plan.ID {
		// The kubelet may not have read the new manifest at all.
		want.Changed, want.Before = false, nil
	}
	if r.ran != nil {
		want.Others(r.ran.ContainerID)
	}
	ctx, cancel := context.WithTimeout(ctx, restoreTimeout)
	defer cancel()
	_, err = r.watch(r.plan.Target).Wait(ctx, want)
	return err
}

// removeStaleConfigurations removes the configurations that the manifest does not name, and their directory if it is empty and managed by
// pmk-sched.
func (d Deps) removeStaleConfigurations(dir, manifest string) error {
	file, err := d.Files.Read(manifest)
	if err != nil {
		return err
	}
	at, err := d.Files.Resolve(dir)
	if err != nil {
		return err
	}
	found, err := filepath.Glob(filepath.Join(at, configStem+"*.yaml"))
	for _, name := range found {
		if base := filepath.Base(name); !strings.Contains(string(file.Data), base) {
			err = errors.Join(err, d.Files.Remove(path.Join(dir, base)))
		}
	}
	if dir == cluster.ManagedConfigDir {
		d.Files.RemoveEmpty(dir)
	}
	return err
}

// deleteObjects deletes the permissions of the plugins and the Policy, unless the scheduler of another node is replaced too.
func (d Deps) deleteObjects(ctx context.Context, pod string) error {
	pods, err := d.schedulerPods(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Name != pod && p.Annotations[staticpod.AnnotationReplacement] != "" }) {
		return nil
	}
	policies, err := d.stalePolicies(ctx)
	if err != nil {
		return err
	}
	role := corev1.DefaultSchedulerName + "-plugins"
	stale := []*unstructured.Unstructured{reference(rbacVersion, "ClusterRoleBinding", "", role), reference(rbacVersion, "ClusterRole", "", role)}
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
	list, err := d.Kube.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, kubeapi.Explain("list pods in "+metav1.NamespaceSystem, err)
	}
	var pods []corev1.Pod
	for _, pod := range list.Items {
		_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
		for _, container := range pod.Spec.Containers {
			if mirror && container.Name == schedulerContainer {
				pods = append(pods, pod)
			}
		}
	}
	return pods, nil
}
