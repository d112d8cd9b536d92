//go:build linux && (cases || releases)

package plugins

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// attackPause is the time between two acts of an attacker.
const attackPause = 20 * time.Millisecond

// attacker is a user with few rights who sends generated requests. The API server refuses many of
// them.
type attacker struct {
	x         *siege
	random    *rand.Rand
	namespace string
	kube      kubernetes.Interface
	objects   dynamic.Interface
	first     []func(context.Context) error // before act
	act       func(context.Context) error

	n       int
	pods    []string // in the order of their creation
	answers map[string]int
}

// startAttackers starts the hostile tenants and the agent until ctx ends, and logs how the API
// server answered.
func (x *siege) startAttackers(ctx context.Context, t *testing.T) *sync.WaitGroup {
	t.Helper()
	all := &sync.WaitGroup{}
	for i, namespace := range []string{mallory, trudy} {
		a := x.newAttacker(t, namespace, uint64(i), tenantConfig(t, x, namespace))
		a.act, a.first = a.actAsTenant, a.opening()
		all.Go(func() { a.run(ctx, t) })
	}
	a := x.newAttacker(t, rogue, 2, agentConfig(t, x))
	a.act = a.actAsAgent
	all.Go(func() { a.run(ctx, t) })
	return all
}

func (x *siege) newAttacker(t *testing.T, namespace string, stream uint64, config *rest.Config) *attacker {
	t.Helper()
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{} // the pause is the limit
	a := &attacker{x: x, namespace: namespace, random: rand.New(rand.NewPCG(x.seed, stream)), answers: map[string]int{}}
	var err error
	if a.kube, err = kubernetes.NewForConfig(config); err == nil {
		a.objects, err = dynamic.NewForConfig(config)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *attacker) run(ctx context.Context, t *testing.T) {
	t.Helper()
	for clock.Sleep(ctx, attackPause) == nil {
		a.n++
		act := a.act
		if len(a.first) > 0 {
			act, a.first = a.first[0], a.first[1:]
		}
		err := act(ctx)
		if ctx.Err() != nil {
			break
		}
		answer := "accepted"
		if err != nil {
			answer = string(apierrors.ReasonForError(err))
		}
		a.answers[answer]++
		if answer == "" {
			t.Logf("%s: %v", a.namespace, err)
		}
	}
	t.Logf("%s: %d requests, answered with %v", a.namespace, a.n, a.answers)
	if a.answers["accepted"] < a.n/5 {
		t.Errorf("%s: few requests were accepted", a.namespace)
	}
}

// tenantConfig returns the configuration of a user who may write pods, PodGroups and ElasticQuotas
// of a namespace. He may create ElasticQuotas of any name, but neither change nor delete the one of
// the administrator.
func tenantConfig(t *testing.T, x *siege, namespace string) *rest.Config {
	t.Helper()
	write := []string{"create", "update", "patch", "delete", "get", "list", "watch"}
	config := x.Config()
	config.Impersonate.UserName = namespace
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: write},
		{APIGroups: []string{podGroups.Group}, Resources: []string{podGroups.Resource}, Verbs: write},
		{APIGroups: []string{elasticQuotas.Group}, Resources: []string{elasticQuotas.Resource}, Verbs: []string{"create"}},
		{APIGroups: []string{elasticQuotas.Group}, Resources: []string{elasticQuotas.Resource},
			ResourceNames: quotaNames(), Verbs: []string{"update", "patch", "delete"}},
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Rules: rules}
	binding := &rbacv1.RoleBinding{ObjectMeta: role.ObjectMeta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: namespace}}}
	_, err := x.Kube.RbacV1().Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{})
	if err == nil {
		_, err = x.Kube.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	run.Eventually(t, namespace+" may create pods", func(ctx context.Context) (bool, string) {
		_, err := kube.CoreV1().Pods(namespace).Create(ctx, x.pod("access", nil),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil, fmt.Sprint(err)
	})
	return config
}

// actAsTenant sends one request.
func (a *attacker) actAsTenant(ctx context.Context) error {
	pods := a.kube.CoreV1().Pods(a.namespace)
	switch n := a.random.IntN(100); {
	case len(a.pods) >= maxHostilePods || n < 20 && len(a.pods) > 0:
		return a.deletePod(ctx)
	case n < 60:
		return a.createPod(ctx, a.newPod())
	case n < 68:
		return a.createGang(ctx)
	case n < 80 && len(a.pods) > 0:
		_, err := pods.Patch(ctx, pick(a.random, a.pods), types.MergePatchType, a.podPatch(), metav1.PatchOptions{})
		return err
	case n < 90:
		return a.writeQuota(ctx)
	default:
		return a.writePodGroup(ctx, fmt.Sprint("g-", a.random.IntN(1000)), a.podGroupSpec())
	}
}

func (a *attacker) createPod(ctx context.Context, pod *corev1.Pod) error {
	_, err := a.kube.CoreV1().Pods(a.namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err == nil {
		a.pods = append(a.pods, pod.Name)
	}
	return err
}

// deletePod deletes the oldest pod, or any, at once or with its own time. One with a finalizer
// stays until the finalizer is removed.
func (a *attacker) deletePod(ctx context.Context) error {
	i := 0
	if a.random.IntN(2) == 0 {
		i = a.random.IntN(len(a.pods))
	}
	name, options := a.pods[i], metav1.DeleteOptions{}
	if a.random.IntN(4) > 0 {
		options.GracePeriodSeconds = new(int64)
	}
	pods := a.kube.CoreV1().Pods(a.namespace)
	if a.random.IntN(2) == 0 {
		if _, err := pods.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`),
			metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	err := pods.Delete(ctx, name, options)
	pod, gone := pods.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(gone) || pod.Name == "" {
		a.pods = slices.Delete(a.pods, i, i+1)
	}
	return err
}

// createGang creates a PodGroup with its pods. One of the pods may keep the others waiting: it
// names another scheduler, and requests what the cluster has.
func (a *attacker) createGang(ctx context.Context) error {
	name, size := fmt.Sprint("gang-", a.n), 2+a.random.IntN(4)
	if err := a.writePodGroup(ctx, name, map[string]any{"minMember": int64(size),
		"scheduleTimeoutSeconds": pick(a.random, []int64{1, 60, 840, 1 << 40})}); err != nil {
		return err
	}
	for i := range size {
		pod := a.x.pod(fmt.Sprint(name, "-", i), amounts{"cpu": "10m"})
		pod.Labels = map[string]string{groupLabel: name}
		switch last := i == size-1; {
		case last && a.random.IntN(2) == 0:
			pod.Spec.SchedulerName = "none"
			pod.Spec.Containers[0].Resources.Requests = amounts{"cpu": pick(a.random, []string{"1", "60", "250"})}.list()
			pod.Spec.Containers[0].Resources.Limits = nil
		case last && a.random.IntN(2) == 0:
			a.spoil(pod)
			restrain(pod)
		}
		if err := a.createPod(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}

// removeAll deletes the pods of a namespace at once, and returns how many are left.
func (x *siege) removeAll(ctx context.Context, namespace string) (left int, err error) {
	pods := x.Kube.CoreV1().Pods(namespace)
	list, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	var all errgroup.Group
	all.SetLimit(20)
	for i := range list.Items {
		all.Go(func() error {
			if len(list.Items[i].Finalizers) > 0 {
				if _, err := pods.Patch(ctx, list.Items[i].Name, types.MergePatchType,
					[]byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
					return err
				}
			}
			err := pods.Delete(ctx, list.Items[i].Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
	}
	return len(list.Items), all.Wait()
}

// pick returns one of a list.
func pick[T any](random *rand.Rand, all []T) T { return all[random.IntN(len(all))] }
