//go:build linux

// Package rollout runs `pmk-sched rollout` against a real API server, with real schedulers and the
// real webhook. The test does the work of the kubelets and of the controllers of pods.
package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/pmk-sched/pmk-sched/internal/admission/authority"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/controller"
	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/test/internal/webhooks"
)

const (
	space  = "team"
	blocks = "blocks" // label of the pods that a bad configuration finds no node for
)

// world is a cluster with the default scheduler, in which the pods of many controllers are created.
type world struct {
	plane *controlplane.Plane
	// per is the number of pods a second.
	per int

	mu      sync.Mutex
	created int
}

// newWorld starts a cluster of a release. Before policies it has the webhook.
func newWorld(t *testing.T, release string) *world {
	t.Helper()
	p := controlplane.Start(t, release, webhooks.Flags()...)
	w := &world{plane: p, per: 40}
	w.play(t)
	if p.Release.Rules().MutatingPolicyAPI == "" {
		w.serveWebhook(t)
	}
	p.Namespace(t.Context(), t, space)
	p.Nodes(t.Context(), t, space, controlplane.Numbered("node", 4)...)
	p.NewScheduler(t, controlplane.Scheduler{Name: corev1.DefaultSchedulerName}).Start()
	return w
}

// play makes Deployments available: the schedulers run as processes of the test.
func (w *world) play(t *testing.T) {
	w.plane.Server().Play(t, metav1.NamespaceSystem, func(string) apiserver.Behavior { return apiserver.Works })
}

// serveWebhook runs a replica of the webhooks, and does what the controller does for them.
func (w *world) serveWebhook(t *testing.T) {
	t.Helper()
	hooks := webhooks.Install(t, w.plane.Server())
	hooks.Trust(t)
	hooks.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
			if a, err := authority.Ensure(ctx, w.plane.Kube, controller.DefaultNamespace); err == nil {
				_, _ = a.Trust(ctx, w.plane.Kube) // tried again
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// verdict is how an extender answers about a pod.
type verdict func(pod *corev1.Pod) (blocked bool, wait time.Duration)

// scheduler runs a scheduler with an extender, nil for none, until the test ends.
func (w *world) scheduler(t *testing.T, name string, decide verdict) {
	t.Helper()
	s := controlplane.Scheduler{Name: name}
	if decide != nil {
		no := false
		s.Extenders = []profiles.Extender{{Name: "decides", URLPrefix: serve(t, decide), FilterVerb: "filter",
			Ignorable: &no}}
	}
	w.plane.NewScheduler(t, s).Start()
}

// serve serves an extender, and returns its address.
func serve(t *testing.T, decide verdict) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var args extenderv1.ExtenderArgs
		if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		result := extenderv1.ExtenderFilterResult{Nodes: args.Nodes}
		blocked, wait := decide(args.Pod)
		time.Sleep(wait)
		if blocked {
			result.Nodes, result.FailedNodes = &corev1.NodeList{}, extenderv1.FailedNodesMap{}
			for _, node := range args.Nodes.Items {
				result.FailedNodes[node.Name] = "every node is blocked"
			}
		}
		if err := json.NewEncoder(w).Encode(result); err != nil {
			t.Log(err)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// uid returns the UID of the controller of a pod: the first digits are spread evenly, so that each
// hundredth pod is in a share of 1 %.
func uid(i int) types.UID {
	_, part := math.Modf(float64(i) * math.Phi)
	return types.UID(fmt.Sprintf("%08x-0000-4000-8000-000000000000", uint32(part*math.MaxUint32)))
}

// load creates pods, each with a controller of its own, until the returned function is called.
func (w *world) load(t *testing.T, labels map[string]string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second / time.Duration(w.per))
		defer tick.Stop()
		for ctx.Err() == nil {
			w.mu.Lock()
			w.created++
			i := w.created
			w.mu.Unlock()
			pod := controlplane.Pod("", space, fmt.Sprintf("p-%05d", i))
			pod.Labels = labels
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: uid(i),
				Controller: new(true)}}
			_, err := w.plane.Kube.CoreV1().Pods(space).Create(ctx, pod, metav1.CreateOptions{})
			if err != nil && ctx.Err() == nil {
				t.Errorf("create %s: %v", pod.Name, err)
			}
			<-tick.C
		}
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

// count returns how many pods exist, how many a route gave to a scheduler, and how many wait.
func (w *world) count(t *testing.T, scheduler string) (all, routed, waiting int) {
	t.Helper()
	pods, err := w.plane.Kube.CoreV1().Pods(space).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		all++
		if pods.Items[i].Annotations[route.Annotation] == scheduler {
			routed++
		}
		if pods.Items[i].Spec.NodeName == "" {
			waiting++
		}
	}
	return all, routed, waiting
}

// file writes pmk-sched.yaml for a scheduler, with a rollout in short steps.
func (w *world) file(t *testing.T, name, rollout string) string {
	t.Helper()
	return run.WriteFile(t, "pmk-sched.yaml", `apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
metadata: {name: `+name+`}
spec:
  image: {reference: localhost/s:v1}
  source: {branch: `+w.plane.Release.String()+`}
  credentials: serviceaccount
  route: {namespaces: [`+space+`]}
  rollout: {`+rollout+`}
`)
}

// args are the arguments of a rollout.
func (w *world) args(path string, more ...string) []string {
	return append([]string{"--kubeconfig", w.plane.Kubeconfig, "--node-root=none", "rollout", "-f", path,
		"--stable-for=100ms"}, more...)
}

// rollOut runs a rollout to its end.
func (w *world) rollOut(t *testing.T, path string, more ...string) run.Result {
	t.Helper()
	return run.PMKSched(t, w.args(path, more...)...)
}

// registered returns the share that the API server has, or -1 without a route.
func (w *world) registered(t *testing.T, scheduler string) int {
	t.Helper()
	hooks, err := w.plane.Kube.AdmissionregistrationV1().MutatingWebhookConfigurations().List(t.Context(),
		metav1.ListOptions{LabelSelector: ownership.LabelInstance + "=" + scheduler})
	if err != nil {
		t.Fatal(err)
	}
	if len(hooks.Items) == 0 {
		return -1
	}
	rule, err := route.Decode(hooks.Items[0].Annotations)
	if err != nil {
		t.Fatal(err)
	}
	return rule.Route.ShareOrDefault()
}

// originsOf returns the origins of the revisions in the history of a scheduler.
func (w *world) originsOf(t *testing.T, scheduler string) (origins []string) {
	t.Helper()
	type entry struct{ Origin string }
	result := run.PMKSched(t, "--kubeconfig", w.plane.Kubeconfig, "history", "--name", scheduler, "-o", "json").OK(t)
	for _, e := range run.Decode[[]entry](t, result.Stdout) {
		origins = append(origins, e.Origin)
	}
	return origins
}
