//go:build linux

package commands

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy/verify"
)

// play acts as the controllers and the scheduler of a cluster, in the namespaces that verifications
// of scheduler name create: the service account controller, with a delay, the namespace controller,
// and a scheduler that calls bind for a pod.
func play(ctx context.Context, t *testing.T, name string, bind func(ctx context.Context, pod *corev1.Pod) error) {
	t.Helper()
	kube := server.Client(t).CoreV1()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	once := func() error {
		list, err := kube.Namespaces().List(ctx, metav1.ListOptions{LabelSelector: ownership.LabelInstance + "=" + name})
		if err != nil {
			return err
		}
		for _, ns := range list.Items {
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
			if ns.DeletionTimestamp == nil && time.Since(ns.CreationTimestamp.Time) > 2*time.Second {
				_, err := kube.ServiceAccounts(ns.Name).Create(ctx, account, metav1.CreateOptions{})
				beingDeleted := apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
				if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) && !beingDeleted {
					return err
				}
			}
			pod, err := kube.Pods(ns.Name).Get(ctx, "probe", metav1.GetOptions{})
			switch {
			case err == nil && pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil:
				if err := bind(ctx, pod); err != nil {
					return err
				}
			case apierrors.IsNotFound(err) && ns.DeletionTimestamp != nil:
				ns.Spec.Finalizers = nil
				if _, err := kube.Namespaces().Finalize(ctx, &ns, metav1.UpdateOptions{}); err != nil &&
					!apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
					return err
				}
			}
		}
		return nil
	}
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := once(); err != nil && ctx.Err() == nil {
				t.Errorf("play the cluster: %v", err)
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
}

// bindTo returns a function that binds a pod to a node, and writes the event of the binding with
// writer.
func bindTo(t *testing.T, node string,
	writer func(ctx context.Context, pod *corev1.Pod) error) func(context.Context, *corev1.Pod) error {
	return func(ctx context.Context, pod *corev1.Pod) error {
		binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
			Target: corev1.ObjectReference{Kind: "Node", Name: node}}
		return errors.Join(server.Client(t).CoreV1().Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{}),
			writer(ctx, pod))
	}
}

func reference(pod *corev1.Pod) corev1.ObjectReference {
	return corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
}

// newEvent writes the event through events.k8s.io, as schedulers do since 1.19.
func newEvent(t *testing.T, reason, controller, instance string) func(context.Context, *corev1.Pod) error {
	return func(ctx context.Context, pod *corev1.Pod) error {
		_, err := server.Client(t).EventsV1().Events(pod.Namespace).Create(ctx, &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "e-", Namespace: pod.Namespace}, EventTime: metav1.NowMicro(),
			ReportingController: controller, ReportingInstance: instance, Action: "Binding", Reason: reason,
			Regarding: reference(pod),
			Note:      "0/1 nodes are available: 1 Insufficient cpu.", Type: corev1.EventTypeNormal,
		}, metav1.CreateOptions{})
		return err
	}
}

// oldEvent writes it through the core API.
func oldEvent(t *testing.T, component, host string) func(context.Context, *corev1.Pod) error {
	return func(ctx context.Context, pod *corev1.Pod) error {
		_, err := server.Client(t).CoreV1().Events(pod.Namespace).Create(ctx, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "e-", Namespace: pod.Namespace}, InvolvedObject: reference(pod),
			Source: corev1.EventSource{Component: component, Host: host}, Reason: "Scheduled", Type: corev1.EventTypeNormal,
		}, metav1.CreateOptions{})
		return err
	}
}

// deployed makes the Deployment and binding of scheduler name, as deploy leaves them, with a pod
// that runs on node.
func deployed(ctx context.Context, t *testing.T, name, ns, node string) {
	t.Helper()
	kube, objs := server.Client(t), schedulerObjects(name, ns)
	d, binding := &appsv1.Deployment{}, &rbacv1.ClusterRoleBinding{}
	if err := errors.Join(
		runtime.DefaultUnstructuredConverter.FromUnstructured(objs[0].Object, binding),
		runtime.DefaultUnstructuredConverter.FromUnstructured(objs[1].Object, d),
	); err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name + "-1", Labels: d.Spec.Template.Labels},
		Spec: d.Spec.Template.Spec}
	pod.Spec.NodeName = node
	_, err1 := kube.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	_, err2 := kube.AppsV1().Deployments(ns).Create(ctx, d, metav1.CreateOptions{})
	_, err3 := kube.CoreV1().ServiceAccounts(ns).Create(ctx, account, metav1.CreateOptions{})
	_, err4 := kube.CoreV1().Pods(ns).Create(ctx, pod, metav1.CreateOptions{})
	holder := node + "_0f1e"
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
	_, err5 := kube.CoordinationV1().Leases(ns).Create(ctx, lease, metav1.CreateOptions{})
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
}

// leftovers returns the namespaces and pods that verifications of scheduler name left, except for
// namespaces that are being deleted.
func leftovers(t *testing.T, name string) (left []string) {
	t.Helper()
	kube := server.Client(t).CoreV1()
	list, err := kube.Namespaces().List(testContext(t),
		metav1.ListOptions{LabelSelector: ownership.LabelInstance + "=" + name})
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range list.Items {
		if ns.DeletionTimestamp == nil {
			left = append(left, "Namespace/"+ns.Name)
		}
		pods, err := kube.Pods(ns.Name).List(testContext(t), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range pods.Items {
			left = append(left, "Pod/"+ns.Name+"/"+pod.Name)
		}
	}
	return left
}

func TestVerifyProvesWhoBoundThePod(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		event func(t *testing.T) func(context.Context, *corev1.Pod) error
		want  verify.Result
	}{
		"new": {
			func(t *testing.T) func(context.Context, *corev1.Pod) error {
				return newEvent(t, "Scheduled", "new", "new-worker")
			},
			verify.Result{BoundBy: "new", Instance: "new-worker"},
		},
		"old": {
			func(t *testing.T) func(context.Context, *corev1.Pod) error { return oldEvent(t, "old", "") },
			verify.Result{BoundBy: "old", Instance: "worker_0f1e",
				Notes: []string{"the event does not name the process of old: the instance is the holder of its lease"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t)
			ns := server.Namespace(t)
			node(ctx, t, "worker", "any")
			deployed(ctx, t, name, ns, "worker")
			play(ctx, t, name, bindTo(t, "worker", tc.event(t)))
			var steps []string
			got, err := verify.Scheduler(ctx, server.Config(), verify.Options{
				Name: name, Namespace: ns, Image: "localhost/pause:1",
				OnStep: func(step string) func(error) { steps = append(steps, step); return nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			want := tc.want
			want.Scheduler, want.Pod, want.Node, want.SchedulerPod = name, "probe", "worker", ns+"/"+name+"-1"
			want.Namespace, want.Seconds, want.MeasuredBy = got.Namespace, got.Seconds, verify.MeasuredLocally
			if diff := cmp.Diff(&want, got); diff != "" {
				t.Errorf("verification (-want +got):\n%s", diff)
			}
			if !strings.HasPrefix(got.Namespace, "pmk-sched-verify-") || got.Seconds <= 0 {
				t.Errorf("verification: %+v", got)
			}
			wantSteps := []string{"create a pod with schedulerName " + name, "wait until it is bound",
				"prove that " + name + " bound it", "clean up"}
			if diff := cmp.Diff(wantSteps, steps); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if left := leftovers(t, name); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			if text, err := json.Marshal(got); err != nil || !strings.Contains(string(text), `"boundBy":"`+name+`"`) {
				t.Errorf("JSON is %s, %v", text, err)
			}
		})
	}
}

func TestVerifyToleratesControlPlaneOnlyWithoutOtherNode(t *testing.T) {
	ctx := testContext(t)
	ns := server.Namespace(t)
	node(ctx, t, "only-master", masterLabel, masterTaint)
	tolerations := make(chan int, 2)
	bind := bindTo(t, "only-master", newEvent(t, "Scheduled", "alone", "alone-elsewhere"))
	play(ctx, t, "alone", func(ctx context.Context, pod *corev1.Pod) error {
		ours := 0
		for _, toleration := range pod.Spec.Tolerations {
			if strings.HasPrefix(toleration.Key, "node-role.kubernetes.io/") {
				ours++
			}
		}
		tolerations <- ours
		return bind(ctx, pod)
	})
	run := func() (*verify.Result, error) {
		return verify.Scheduler(ctx, server.Config(),
			verify.Options{Name: "alone", Namespace: ns, Image: "localhost/pause:1"})
	}
	got, err := run()
	if err != nil {
		t.Fatal(err)
	}
	wantNotes := []string{
		"the pod tolerates the taints of control-plane nodes, because no other node accepts it (node only-master)",
		`the instance "alone-elsewhere" that bound the pod is not one of the 0 pods of Deployment/` + ns + "/alone",
	}
	if diff := cmp.Diff(wantNotes, got.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if tolerated := <-tolerations; tolerated != 3 || !got.ToleratesControlPlane {
		t.Errorf("the pod tolerates %d taints of the control plane: %+v", tolerated, got)
	}
	node(ctx, t, "worker-too", "any")
	if got, err = run(); err != nil || got.ToleratesControlPlane || <-tolerations != 0 {
		t.Errorf("with a worker: %+v, %v", got, err)
	}
}

func TestVerifyDetectsAnotherScheduler(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	ns := server.Namespace(t)
	node(ctx, t, "worker-fooled", "any")
	play(ctx, t, "fooled", bindTo(t, "worker-fooled",
		newEvent(t, "Scheduled", "default-scheduler", "default-scheduler-master")))
	_, err := verify.Scheduler(ctx, server.Config(),
		verify.Options{Name: "fooled", Namespace: ns, Image: "localhost/pause:1"})
	var not *verify.NotScheduledError
	want := `another scheduler bound it to node worker-fooled: "default-scheduler" (default-scheduler-master)`
	if !errors.As(err, &not) || not.Reason != want || !not.CheckFailed() {
		t.Errorf("error is %v", err)
	}
}

func TestVerifyCleansUpWhenInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(testContext(t))
	play(testContext(t), t, "stopped", func(context.Context, *corev1.Pod) error {
		cancel()
		return nil
	})
	_, err := verify.Scheduler(ctx, server.Config(),
		verify.Options{Name: "stopped", Namespace: "default", Image: "localhost/pause:1"})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	if left := leftovers(t, "stopped"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestVerifyReportsThatTheNamespaceGetsNoServiceAccount(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	ns := server.Namespace(t)
	deployed(ctx, t, "noaccount", ns, "worker")
	_, err := verify.Scheduler(ctx, server.Config(), verify.Options{
		Name: "noaccount", Namespace: ns, Image: "localhost/pause:1", Timeout: time.Second,
	})
	if err == nil || !strings.Contains(err.Error(), "no service account `default` after 1s") ||
		!strings.Contains(strings.Join(problem.Hints(err), " "), "kube-controller-manager") {
		t.Errorf("error is %v, hints %q", err, problem.Hints(err))
	}
	if left := leftovers(t, "noaccount"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestVerifyReportsMissingPermission(t *testing.T) {
	t.Parallel()
	_, err := verify.Scheduler(testContext(t), server.ConfigFor("nobody"),
		verify.Options{Name: "denied", Namespace: "default", Image: "localhost/pause:1"})
	var forbidden *kubeapi.ForbiddenError
	if !errors.As(err, &forbidden) || strings.Contains(err.Error(), "\n") || forbidden.Verb != "create" ||
		forbidden.Resource != "namespaces" {
		t.Errorf("error is %v", err)
	}
}

func TestVerifyUsesSchedulerImageByDefault(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	ns := server.Namespace(t)
	node(ctx, t, "worker-own", "any")
	deployed(ctx, t, "own", ns, "worker-own")
	containers := make(chan corev1.Container, 1)
	bind := bindTo(t, "worker-own", newEvent(t, "Scheduled", "own", "own-worker-own"))
	play(ctx, t, "own", func(ctx context.Context, pod *corev1.Pod) error {
		containers <- pod.Spec.Containers[0]
		return bind(ctx, pod)
	})
	if _, err := verify.Scheduler(ctx, server.Config(), verify.Options{Name: "own", Namespace: ns}); err != nil {
		t.Fatal(err)
	}
	got := <-containers
	if got.Image != "localhost/scheduler:1" || !cmp.Equal(got.Command, []string{"kube-scheduler", "--version"}) {
		t.Errorf("the pod runs %s %v", got.Image, got.Command)
	}
}
