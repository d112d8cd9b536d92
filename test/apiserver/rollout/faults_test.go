//go:build linux && faults

package rollout

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// fault is a proxy of the API server that fails at one write of a command.
type fault struct {
	next *httputil.ReverseProxy
	// at is the number of the write. kills ends the command after it, instead of refusing it.
	at    int
	kills bool

	mu     sync.Mutex
	writes int
	// hit is the write, or "" if there were fewer.
	hit string
	cmd *exec.Cmd
}

// ServeHTTP implements http.Handler.
func (f *fault) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !changes(r) || !f.count(r) {
		f.next.ServeHTTP(w, r)
		return
	}
	if !f.kills {
		http.Error(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, `+
			`"message": "refused by the test"}`, http.StatusForbidden)
		return
	}
	f.next.ServeHTTP(httptest.NewRecorder(), r) // without the answer
	_ = f.cmd.Process.Kill()
}

// changes reports whether a request changes an object other than the lock.
func changes(r *http.Request) bool {
	return r.Method != http.MethodGet && r.URL.Query().Get("dryRun") == "" &&
		!strings.HasPrefix(r.URL.Path, "/apis/authorization.k8s.io/") && !strings.Contains(r.URL.Path, "/leases")
}

// count counts a write, and reports whether it is the one that fails.
func (f *fault) count(r *http.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes++
	if f.writes != f.at {
		return false
	}
	f.hit = r.Method + " " + r.URL.Path
	return true
}

// state is what a deployment leaves: the image, "" without a Deployment, and the share of the route
// in percent, -1 without one.
type state struct {
	image string
	share int
}

func (w *world) stateOf(t *testing.T, scheduler string) state {
	t.Helper()
	s := state{share: w.registered(t, scheduler)}
	d, err := w.plane.Kube.AppsV1().Deployments(metav1.NamespaceSystem).Get(t.Context(), scheduler, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	if err == nil && d.DeletionTimestamp == nil {
		s.image = d.Spec.Template.Spec.Containers[0].Image
	}
	return s
}

// deployment returns the command that deploys a state.
func (w *world) deployment(t *testing.T, kubeconfig, scheduler string, s state) *exec.Cmd {
	t.Helper()
	path := run.WriteFile(t, "pmk-sched.yaml", fmt.Sprintf(`apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
metadata: {name: %s}
spec:
  image: {reference: %q}
  source: {branch: %s}
  credentials: serviceaccount
  route: {namespaces: [%s], share: %d}
`, scheduler, s.image, w.plane.Release, space, s.share))
	return exec.CommandContext(run.Context(t), run.Program(t), "--kubeconfig", kubeconfig, "--node-root=none", "deploy",
		"-f", path, "--stable-for=100ms")
}

// become makes a scheduler what it was before, without faults.
func (w *world) become(t *testing.T, scheduler string, s state) {
	t.Helper()
	lock := apply.LockName(scheduler)
	err := w.plane.Kube.CoordinationV1().Leases(metav1.NamespaceSystem).Delete(t.Context(), lock, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) { // a killed command leaves it for 15 s
		t.Fatal(err)
	}
	if s.image != "" {
		run.Command(t, w.deployment(t, w.plane.Kubeconfig, scheduler, s)).OK(t)
	} else if w.stateOf(t, scheduler) != s {
		run.PMKSched(t, "--kubeconfig", w.plane.Kubeconfig, "--node-root=none", "uninstall", "--name", scheduler, "--yes").OK(t)
	}
	if got := w.stateOf(t, scheduler); got != s {
		t.Fatalf("got %+v, expected %+v", got, s)
	}
}

// A deployment with a route that fails at any write leaves the former scheduler with the former
// route, or the new ones. One that is killed may leave the new scheduler with the former route, and
// is completed when it is run again. No route leads to a scheduler that does not exist.
func TestFaultDeployWithARouteLeavesOneOfTwoStates(t *testing.T) {
	w := newWorld(t, apiserver.Release)
	fresh := state{"localhost/s:v2", 40}
	for name, former := range map[string]state{"first": {"", -1}, "again": {"localhost/s:v1", 100}} {
		for mode, kills := range map[string]bool{"refused": false, "killed": true} {
			scheduler := name + "-" + mode
			t.Run(scheduler, func(t *testing.T) {
				allowed := []state{former, fresh}
				if kills {
					allowed = append(allowed, state{fresh.image, former.share})
				}
				w.scheduler(t, scheduler, nil)
				for at := 1; ; at++ {
					w.become(t, scheduler, former)
					f := &fault{next: w.plane.Server().Proxy(t), at: at, kills: kills}
					proxy := httptest.NewServer(f)
					f.cmd = w.deployment(t, kubeconfigOf(t, proxy.URL), scheduler, fresh)
					result := run.Command(t, f.cmd)
					proxy.Close()
					got := w.stateOf(t, scheduler)
					t.Logf("write %d, %s: exit status %d, %+v", at, f.hit, result.Code, got)
					if f.hit == "" {
						if result.OK(t); got != fresh || at < 5 {
							t.Errorf("%+v after %d writes", got, at-1)
						}
						break
					}
					if !slices.Contains(allowed, got) {
						t.Errorf("%s leaves %+v: %s", f.hit, got, result)
					}
					if kills {
						w.become(t, scheduler, fresh)
					}
					w.reaches(t, scheduler)
				}
				w.become(t, scheduler, state{"", -1})
			})
		}
	}
}

// reaches checks that a new pod gets the scheduler only if it exists.
func (w *world) reaches(t *testing.T, scheduler string) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "asks-", Namespace: space,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: uid(0),
			Controller: new(true)}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "localhost/none:v1"}}}}
	made, err := w.plane.Kube.CoreV1().Pods(space).Create(t.Context(), pod,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	if made.Spec.SchedulerName == scheduler && w.stateOf(t, scheduler).image == "" {
		t.Errorf("a pod is routed to %s, which does not exist", scheduler)
	}
}

// kubeconfigOf writes a kubeconfig without credentials.
func kubeconfigOf(t *testing.T, server string) (path string) {
	t.Helper()
	return run.WriteFile(t, "kubeconfig", fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {}}],
"clusters": [{"name": "c", "cluster": {"server": %q}}]}`, server))
}
