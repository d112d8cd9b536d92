//go:build linux && cases

package rollout

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// clear deletes all pods.
func (w *world) clear(t *testing.T) {
	t.Helper()
	now := int64(0)
	err := w.plane.Kube.CoreV1().Pods(space).DeleteCollection(t.Context(),
		metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// started is a rollout that runs.
type started struct {
	cmd    *exec.Cmd
	output run.Output
}

// startRollout starts a rollout.
func (w *world) startRollout(t *testing.T, path string) *started {
	t.Helper()
	s := &started{cmd: exec.CommandContext(t.Context(), run.Program(t), w.args(path)...)}
	s.cmd.Stdout, s.cmd.Stderr, s.cmd.Env = &s.output, &s.output, os.Environ()
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}

// end sends a signal and waits for the end of the rollout.
func (s *started) end(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait() // the state is compared
}

// unroute ends the route of a scheduler: of two routes for the same pods, one gets them all.
func (w *world) unroute(t *testing.T, scheduler string) {
	t.Helper()
	err := w.plane.Kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Delete(t.Context(),
		route.Name(scheduler), metav1.DeleteOptions{})
	if err != nil {
		t.Error(err)
	}
}

// rounds of each bad configuration.
const rounds = 10

// Each time, a configuration that spoils placements is stopped at the first step within 90 s, and
// at most 1 % of the pods got it. It is rolled out again in each round.
func TestBadConfigurationsAreStoppedEachTime(t *testing.T) {
	w := newWorld(t, apiserver.Release)
	slow := func(*corev1.Pod) (bool, time.Duration) { return false, 500 * time.Millisecond }
	for name, tc := range map[string]struct {
		decide verdict
		gate   string
	}{
		"blocks": {blocksLabel, "unschedulable<=0"},
		"slow":   {slow, "wait-p99<=500ms"},
	} {
		t.Run(name, func(t *testing.T) {
			w.scheduler(t, name, tc.decide)
			path := w.file(t, name, short)
			for range rounds {
				w.clear(t)
				stop := w.load(t, map[string]string{blocks: "yes"})
				began := time.Now()
				result := w.rollOut(t, path, "--gate", tc.gate)
				took := time.Since(began)
				stop()
				all, routed, _ := w.count(t, name)
				t.Logf("stopped after %.1f s: %d of %d pods were routed", took.Seconds(), routed, all)
				result.Fails(t, 3, "gate "+tc.gate+": ", "(team/p-", "the share of its route is 0 %")
				if took > 90*time.Second || routed == 0 || 100*routed > all || strings.Contains(result.Stderr, "step 2") {
					t.Errorf("after %s %d of %d pods were routed: %s", took, routed, all, result)
				}
			}
		})
	}
}

// slowSteps is a rollout that is at a step for long enough to end it there.
const slowSteps = "steps: [1, 20, 100], stepTime: 4s, minPods: 1, stepLimit: 1m"

// A rollout that is killed leaves the share of its last revision, and continues from there. One
// that is interrupted leaves no pod routed.
func TestRolloutsThatEndEarlyLeaveOneOfTwoStates(t *testing.T) {
	w := newWorld(t, apiserver.Release)
	w.load(t, nil)
	for i, share := range []int{1, 20, 100} {
		for signal, name := range map[syscall.Signal]string{syscall.SIGKILL: "killed", syscall.SIGINT: "interrupted"} {
			name = fmt.Sprintf("%s-%d", name, share)
			t.Run(name, func(t *testing.T) {
				w.scheduler(t, name, nil)
				path := w.file(t, name, slowSteps)
				started := w.startRollout(t, path)
				run.Eventually(t, "the share is set", func(context.Context) (bool, string) {
					text := started.output.String()
					return strings.Contains(text, fmt.Sprintf("step %d of 3: a share of %d %% (", i+1, share)), text
				})
				started.end(t, signal)
				status := run.PMKSched(t, "--kubeconfig", w.plane.Kubeconfig, "--node-root=none", "status", "--name", name)
				if signal == syscall.SIGINT {
					if left := w.registered(t, name); left != 0 {
						t.Errorf("the share is %d %%: %s", left, started.output.String())
					}
					status.Prints(t, "a share of 0 %", "Interrupted: ")
					return
				}
				if left := w.registered(t, name); left != share {
					t.Errorf("the share is %d %%: %s", left, started.output.String())
				}
				status.Prints(t, fmt.Sprintf("step %d of 3, gates unschedulable<=0, wait-p99<=5s", i+1))
				w.rollOut(t, path).OK(t).Prints(t, fmt.Sprintf("continuing: scheduler %s is at a share of %d %%", name, share),
					"step 3 of 3: a share of 100 %")
				w.unroute(t, name)
			})
		}
	}
}

// A rollout that is killed while it changes the share leaves the former share or the new one; it
// continues in both cases.
func TestRolloutsThatAreKilledBetweenStepsContinue(t *testing.T) {
	w := newWorld(t, apiserver.Release)
	w.load(t, nil)
	for _, step := range []string{"save revision", "route pods", "mark deployed"} {
		name := "killed-at-" + strings.ReplaceAll(step, " ", "-")
		t.Run(name, func(t *testing.T) {
			w.scheduler(t, name, nil)
			path := w.file(t, name, short)
			started := w.startRollout(t, path)
			run.Eventually(t, "the second share is set", func(context.Context) (bool, string) {
				text := started.output.String()
				_, after, found := strings.Cut(text, "step 1 of 3: a share of 1 %")
				return found && strings.Contains(after, step), text
			})
			started.end(t, syscall.SIGKILL)
			if share := w.registered(t, name); !slices.Contains([]int{1, 20}, share) {
				t.Errorf("the share is %d %%", share)
			}
			w.rollOut(t, path).OK(t).Prints(t, "continuing: ", "step 3 of 3: a share of 100 %")
			w.unroute(t, name)
		})
	}
}

// With the gate agreement a shadow decides first. A scheduler that decides otherwise is not
// deployed.
func TestShadowIsTheFirstStage(t *testing.T) {
	w := newWorld(t, apiserver.Release)
	w.load(t, nil)
	w.scheduler(t, "shadowed", nil)
	path := w.file(t, "shadowed", short+", shadowTime: 5s, gates: [agreement>=90, unschedulable<=0]")
	w.rollOut(t, path).OK(t).Prints(t, "shadow: gate agreement>=90: ", "step 3 of 3: a share of 100 %")
	w.unroute(t, "shadowed") // the default scheduler decides about the pods again

	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	packs := run.WriteFile(t, "pmk-sched.yaml", strings.NewReplacer("shadowed", "packs",
		"  source:", "  configuration: {preset: binpack}\n  source:", "agreement>=90", "agreement>=100").Replace(
		string(text)))
	w.rollOut(t, packs).Fails(t, 3, "gate agreement>=100: ", "the share of its route is 0 %")
	if share := w.registered(t, "packs"); share != -1 {
		t.Errorf("a scheduler whose shadow decides otherwise has a share of %d %%", share)
	}
}
