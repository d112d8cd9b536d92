//go:build linux

package admission

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/admission"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/audit"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/test/internal/webhooks"
	"github.com/pmk-sched/pmk-sched/versions"
)

// rounds is the number of races.
const rounds = 20

// forwarded is the metric of the reviews that a replica passes on.
const forwarded = `pmk_sched_arbiter_decisions_total{result="forwarded"}`

// cluster is an API server with one node of 2 CPU.
type cluster struct {
	server  *apiserver.Server
	release versions.Release
	// log has the requests to the server.
	log  string
	kube kubernetes.Interface
	node string
	n    int
}

func newCluster(t *testing.T, release string) *cluster {
	t.Helper()
	flags, log, err := apiserver.AuditFlags(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	plane := controlplane.StartAPIServer(t, release, append(flags, webhooks.Flags()...)...)
	c := &cluster{server: plane.Server(), release: plane.Release, log: log, kube: plane.Kube, node: "node-1"}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.node}}
	node, err = c.kube.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi"),
		"pods": resource.MustParse("110")}
	node.Status.Capacity = node.Status.Allocatable
	if _, err := c.kube.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return c
}

// pod creates a pending pod.
func (c *cluster) pod(t *testing.T, namespace, cpu string) *corev1.Pod {
	t.Helper()
	return c.podOf(t, namespace, cpu, corev1.DefaultSchedulerName)
}

// podOf creates a pending pod of a scheduler.
func (c *cluster) podOf(t *testing.T, namespace, cpu, scheduler string) *corev1.Pod {
	t.Helper()
	c.n++
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", c.n), Namespace: namespace},
		Spec: corev1.PodSpec{SchedulerName: scheduler, SecurityContext: ownership.ConfinedAs(1),
			Containers: []corev1.Container{{Name: "main", Image: "x", SecurityContext: ownership.Confined(),
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}}}
	pod, err := c.kube.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func (c *cluster) bind(ctx context.Context, pod *corev1.Pod) error {
	return c.kube.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: c.node}}, metav1.CreateOptions{})
}

// delete deletes pods at once.
func (c *cluster) delete(t *testing.T, pods ...*corev1.Pod) {
	t.Helper()
	for _, pod := range pods {
		if err := c.kube.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name,
			metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
			t.Fatal(err)
		}
	}
}

// race binds two pods that do not fit together at the same moment, and returns the errors.
func (c *cluster) race(t *testing.T, namespace string) (failed []error) {
	t.Helper()
	a, b := c.pod(t, namespace, "1200m"), c.pod(t, namespace, "1200m")
	var group sync.WaitGroup
	errs := make([]error, 2)
	for i, pod := range []*corev1.Pod{a, b} {
		group.Go(func() { errs[i] = c.bind(t.Context(), pod) })
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			failed = append(failed, err)
		}
	}
	c.delete(t, a, b)
	return failed
}

// awaitRefusals waits until one of two pods is refused.
func (c *cluster) awaitRefusals(t *testing.T, namespace string) {
	t.Helper()
	run.Eventually(t, "one of two bindings is refused", func(context.Context) (bool, string) {
		failed := c.race(t, namespace)
		return len(failed) == 1, fmt.Sprint(failed)
	})
}

// slowest binds pods that do not fit for some time, and returns the time of the slowest binding.
// None may fail.
func (c *cluster) slowest(t *testing.T, namespace string, count int) (most time.Duration) {
	t.Helper()
	var pods []*corev1.Pod
	for range count {
		pods = append(pods, c.pod(t, namespace, "1200m"))
	}
	for _, pod := range pods {
		began := time.Now()
		if err := c.bind(t.Context(), pod); err != nil {
			t.Errorf("bind %s: %v", pod.Name, err)
		}
		most = max(most, time.Since(began))
	}
	c.delete(t, pods...)
	return most
}

func TestArbiter(t *testing.T) {
	for _, release := range apiserver.Releases() {
		t.Run(release, func(t *testing.T) { arbitrates(t, newCluster(t, release)) })
	}
}

func arbitrates(t *testing.T, c *cluster) {
	w, team := webhooks.Install(t, c.server), c.server.Namespace(t)
	c.status(t, "", "API servers do not trust the webhook yet")
	if failed := c.race(t, team); len(failed) > 0 {
		t.Fatalf("without the arbiter's servers: %v", failed)
	}
	w.Trust(t)
	c.status(t, "", "no replica has ever led")
	first, second := w.Start(t), w.Start(t)
	leader := w.Leader(t)
	other := first
	if leader == first {
		other = second
	}
	c.awaitRefusals(t, team) // the API server has seen the authority

	t.Run("of two bindings for the room of one, one is refused", func(t *testing.T) {
		for range rounds {
			failed := c.race(t, team)
			if len(failed) != 1 || !apierrors.IsConflict(failed[0]) ||
				!strings.Contains(failed[0].Error(), "node node-1 has not enough cpu left for pod "+team+"/pod-") ||
				!strings.Contains(failed[0].Error(), "requested 1200m, left 800m; the last pod that was bound there is "+team) {
				t.Errorf("got %v", failed)
			}
		}
		refused := leader.Metric(t, `pmk_sched_arbiter_decisions_total{result="refused"}`)
		if refused < rounds || refused != leader.Metric(t, `pmk_sched_arbiter_refused_total{resource="cpu"}`) {
			t.Errorf("refused %.0f", refused)
		}
	})
	t.Run("a pod that is bound leaves no room, and one that was deleted does", func(t *testing.T) {
		a, b := c.pod(t, team, "1200m"), c.pod(t, team, "1200m")
		if err := c.bind(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		if err := c.bind(t.Context(), b); !apierrors.IsConflict(err) {
			t.Errorf("got %v", err)
		}
		c.delete(t, a)
		run.Eventually(t, "the other is bound", func(ctx context.Context) (bool, string) {
			err := c.bind(ctx, b)
			return err == nil, fmt.Sprint(err)
		})
		c.delete(t, b)
	})
	t.Run("room is kept for a pod that another scheduler has nominated", func(t *testing.T) {
		a, b := c.pod(t, team, "1200m"), c.pod(t, team, "1200m")
		b.Status.NominatedNodeName = c.node
		if _, err := c.kube.CoreV1().Pods(team).UpdateStatus(t.Context(), b, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := c.bind(t.Context(), a); err != nil {
			t.Errorf("a pod of the same scheduler is refused: %v", err)
		}
		c.delete(t, a)
		other := c.podOf(t, team, "1200m", "other-scheduler")
		run.Eventually(t, "the pod of another scheduler is refused", func(ctx context.Context) (bool, string) {
			err := c.bind(ctx, other)
			return apierrors.IsConflict(err) && strings.Contains(err.Error(), "requested 1200m, left 800m; the pod of another "+
				"scheduler that is nominated for it is "+team+"/"+b.Name), fmt.Sprint(err)
		})
		if err := c.bind(t.Context(), b); err != nil {
			t.Errorf("the nominated pod is refused: %v", err)
		}
		c.delete(t, b, other)
	})
	t.Run("a dry run takes no room", func(t *testing.T) {
		a, b := c.pod(t, team, "1200m"), c.pod(t, team, "1200m")
		err := c.kube.CoreV1().Pods(team).Bind(t.Context(), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: a.Name},
			Target: corev1.ObjectReference{Kind: "Node", Name: c.node}}, metav1.CreateOptions{DryRun: []string{"All"}})
		if err != nil {
			t.Error(err)
		}
		if err := c.bind(t.Context(), b); err != nil {
			t.Error(err)
		}
		c.delete(t, a, b)
	})
	t.Run("a Binding that is not a subresource is refused", func(t *testing.T) {
		a, b := c.pod(t, team, "1200m"), c.pod(t, team, "1200m")
		var failed []error
		for _, pod := range []*corev1.Pod{a, b} {
			err := c.kube.CoreV1().RESTClient().Post().Namespace(team).Resource("bindings").Body(&corev1.Binding{
				ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: pod.Name},
				Target:     corev1.ObjectReference{Kind: "Node", Name: c.node}}).Do(t.Context()).Error()
			if err != nil {
				failed = append(failed, err)
			}
		}
		if len(failed) != 1 || !apierrors.IsConflict(failed[0]) {
			t.Errorf("got %v", failed)
		}
		c.delete(t, a, b)
	})
	t.Run("kube-system and the own namespace are left alone", func(t *testing.T) {
		before := leader.Metric(t, `pmk_sched_admission_requests_total{result="allowed",webhook="arbiter"}`)
		for _, namespace := range []string{metav1.NamespaceSystem, "pmk-sched-system"} {
			if failed := c.race(t, namespace); len(failed) > 0 {
				t.Errorf("%s: %v", namespace, failed)
			}
		}
		if after := leader.Metric(t, `pmk_sched_admission_requests_total{result="allowed",webhook="arbiter"}`); after != before &&
			c.release.Rules().NamespaceNames { // before 1.21 no label has the name of a namespace
			t.Errorf("the arbiter was asked %.0f times", after-before)
		}
	})
	t.Run("only requests with the token are read", func(t *testing.T) { untrusted(t, c, leader) })
	t.Run("another replica passes reviews on to the leader", func(t *testing.T) {
		a, b := c.pod(t, team, "1200m"), c.pod(t, team, "1200m")
		before := other.Metric(t, forwarded)
		if answer := c.ask(t, other, a, c.node); !answer.Allowed {
			t.Errorf("got %+v", answer.Result)
		}
		if answer := c.ask(t, other, b, c.node); answer.Allowed || answer.Result.Code != http.StatusConflict {
			t.Errorf("got %+v", answer)
		}
		if n := other.Metric(t, forwarded) - before; n != 2 {
			t.Errorf("%s passed on %.0f", other.Name, n)
		}
		if n := other.Metric(t, `pmk_sched_arbiter_decisions_total{result="admitted"}`); n > 0 {
			t.Errorf("%s admitted %.0f", other.Name, n)
		}
		c.delete(t, a, b)
	})
	t.Run("pods are routed", func(t *testing.T) { c.register(t, w) })
	t.Run("hostile requests delay no decision", func(t *testing.T) { c.flood(t, leader, team) })
	// From 1.37 on, an API server that resolves Services to endpoints chooses a replica for each
	// review (WebhookRoundTripLoadBalancing in k8s.io/apiserver/pkg/features).
	if c.release.Minor < 37 {
		t.Run("the connections of the API server move to the leader", func(t *testing.T) {
			run.Eventually(t, "no review is passed on", func(context.Context) (bool, string) {
				before := other.Metric(t, forwarded)
				for range 5 {
					c.race(t, team)
				}
				passed := other.Metric(t, forwarded) - before
				return passed == 0, fmt.Sprintf("%.0f of 10 are", passed)
			})
		})
	}
	t.Run("status says who decides", func(t *testing.T) { c.status(t, leader.Name, "") })
	t.Run("a leader that stops hands over", func(t *testing.T) {
		leader.Signal(t, syscall.SIGTERM)
		began := time.Now()
		run.Eventually(t, "it has ended", func(context.Context) (bool, string) {
			return strings.Contains(leader.Output.String(), "does not lead anymore"), leader.Output.String()
		})
		w.Remove(t, leader)
		if got := w.Leader(t); got != other {
			t.Errorf("%s leads", got.Name)
		}
		c.awaitRefusals(t, team)
		t.Logf("another replica decided %s after the signal", time.Since(began))
	})
	successor := w.Start(t)
	t.Run("a killed leader is replaced, and bindings go on", func(t *testing.T) {
		other.Signal(t, syscall.SIGKILL)
		began := time.Now()
		if took := c.slowest(t, team, 10); took > time.Second {
			t.Errorf("a binding took %s", took)
		}
		if took := c.slowestCreation(t, 10); took > time.Second {
			t.Errorf("the creation of a pod took %s", took)
		}
		w.Remove(t, other)
		if got := w.Leader(t); got != successor {
			t.Errorf("%s leads", got.Name)
		}
		c.awaitRefusals(t, team)
		t.Logf("another replica decided %s after the kill", time.Since(began))
	})
	t.Run("a leader that hangs delays bindings by a second", func(t *testing.T) {
		successor.Signal(t, syscall.SIGSTOP)
		defer successor.Signal(t, syscall.SIGCONT)
		took := c.slowest(t, team, 3)
		if took > 1200*time.Millisecond || took < 500*time.Millisecond {
			t.Errorf("a binding took %s", took)
		}
		created := c.slowestCreation(t, 3)
		if created > 1200*time.Millisecond {
			t.Errorf("the creation of a pod took %s", created)
		}
		t.Logf("the slowest binding took %s, the slowest creation of a pod %s", took, created)
	})
	c.failsOpen(t)
	c.checkPermissions(t, w)
}

// failsOpen checks the metric of an alert: the API server counts the bindings that it did not ask
// the arbiter about, from 1.24 on (kubernetes#107171).
func (c *cluster) failsOpen(t *testing.T) {
	t.Helper()
	text, err := c.kube.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const series = `apiserver_admission_webhook_fail_open_count{name="arbiter.pmk-sched.io",type="validating"}`
	if got, want := strings.Contains(string(text), series), c.release.Minor >= 24; got != want {
		t.Errorf("the API server has %s: %t", series, got)
	}
}

// checkPermissions checks that the replicas used each verb that they are granted on each resource.
func (c *cluster) checkPermissions(t *testing.T, w *webhooks.Installed) {
	t.Helper()
	requests, err := audit.Requests(c.log, "")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, r := range requests {
		if r.User == w.Account() {
			used[r.Verb+" "+r.Resource] = true
		}
	}
	var granted []string
	for _, rules := range admission.Permissions() {
		for _, rule := range rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					granted = append(granted, verb+" "+resource)
					if !used[verb+" "+resource] {
						t.Errorf("%s %s is granted and not used", verb, resource)
					}
				}
			}
		}
	}
	for permission := range used {
		if !slices.Contains(granted, permission) {
			t.Errorf("%s is used and not granted", permission)
		}
	}
}
