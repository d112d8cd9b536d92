package replace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/staticpod"
)

func (d Deps) watch(r *Plan) *staticpod.Watch {
	return &staticpod.Watch{
		Kube: d.Kube, Namespace: metav1.NamespaceSystem, Pod: r.Pod, Container: schedulerContainer, HoldsAPI: r.holdsAPI,
		Elects: r.elects, Hosts: r.hosts, Alone: r.alone, Log: d.Log,
	}
}

func (d Deps) swapper(single bool) staticpod.Swapper {
	return staticpod.Swapper{Files: d.Files, SingleFile: single}
}

// userOf reports whether the scheduler's container runs as another user than root,
// who then has to be able to read the configuration.
func (r *replacing) userOf() bool {
	m, err := staticpod.Parse(r.r.Layout.Manifest, r.r.New.Data)
	if err != nil {
		return true
	}
	container, err := m.Container(schedulerContainer)
	if err != nil {
		return true
	}
	var user *int64
	if s := m.Pod.Spec.SecurityContext; s != nil {
		user = s.RunAsUser
	}
	if s := container.SecurityContext; s != nil && s.RunAsUser != nil {
		user = s.RunAsUser
	}
	return user != nil && *user != 0
}

// swapBack brings back the manifest from before, first of all and without asking
// the API server, which may be down because of it; then it waits until the former
// scheduler is ready again.
func (r *replacing) swapBack(ctx context.Context, _ error) error {
	if !r.swapped {
		return nil
	}
	previous, err := r.backup.Load(r.backup.Manifest(), staticpod.PreviousCopy)
	if err != nil {
		return err
	}
	here, err := r.Files.Read(r.r.Layout.Manifest)
	if err != nil {
		return err
	}
	switch {
	case bytes.Equal(here.Data, previous.Data):
		r.swapped = false // it failed before the rename
		return nil
	case !bytes.Equal(here.Data, r.r.New.Data):
		return fmt.Errorf("bring back %s: %w", r.r.Layout.Manifest, staticpod.ErrEdited)
	}
	want := staticpod.Want{Replacement: staticpod.Replacement(previous.Data), Changed: true, Pinned: r.r.pinned, Settle: backSettle}
	if !r.apiAway {
		if want.Before, err = r.watch(r.r).Look(ctx); err != nil {
			want.Before = nil
		}
	}
	if err := r.swapper(r.r.single).Swap(r.r.Layout.Manifest, here.Data, previous); err != nil {
		return err
	}
	if before := want.Before; before == nil || before.Replacement != r.r.id {
		// The kubelet may not have looked at the new one at all.
		want.Changed, want.Before = false, nil
	}
	if r.ran != nil {
		want.Others(r.ran.ContainerID)
	}
	ctx, cancel := context.WithTimeout(ctx, backTimeout)
	defer cancel()
	_, err = r.watch(r.r).Wait(ctx, want)
	return err
}

// dropConfigurations removes the configurations of ours that the manifest does not
// name, and the folder if nothing is left in it.
func (d Deps) dropConfigurations(dir, manifest string) error {
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
	if dir == configDir {
		d.Files.RemoveEmpty(dir)
	}
	return err
}

// dropRules removes the role of the plugins and the Policy, unless another node runs ours.
func (d Deps) dropRules(ctx context.Context, pod string) error {
	others, err := d.replacedPods(ctx)
	if err != nil {
		return err
	}
	for _, other := range others {
		if other.Name != pod {
			return nil
		}
	}
	var doomed []*unstructured.Unstructured
	for _, kind := range []string{"ClusterRoleBinding", "ClusterRole"} {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("rbac.authorization.k8s.io/v1")
		o.SetKind(kind)
		o.SetName(corev1.DefaultSchedulerName + "-plugins")
		o.SetLabels(kubeapi.OwnerLabels(corev1.DefaultSchedulerName))
		doomed = append(doomed, o)
	}
	policies, err := d.doomedPolicies(ctx)
	if err != nil {
		return err
	}
	_, err = d.Applier.Delete(ctx, append(doomed, policies...))
	return err
}

// replacedPods are the mirror pods that run ours.
func (d Deps) replacedPods(ctx context.Context) ([]corev1.Pod, error) {
	pods, err := d.schedulerPods(ctx)
	if err != nil {
		return nil, err
	}
	var ours []corev1.Pod
	for _, pod := range pods {
		if pod.Annotations[staticpod.AnnotationReplacement] != "" {
			ours = append(ours, pod)
		}
	}
	return ours, nil
}

// schedulerPods are the mirror pods with a default scheduler in them.
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
