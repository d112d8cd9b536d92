//go:build linux

// Package controller measures what `pmk-sched controller run` needs for many CustomSchedulers: the
// time until all of them are ready, and then its memory, its processor time and its requests.
package controller

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/controller"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/audit"
	"github.com/pmk-sched/pmk-sched/test/internal/controllers"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
)

// claimedObjects is the number of objects of docs/controller.md.
const claimedObjects = 100

// BenchmarkController deploys OBJECTS (100) schedulers, and then looks at the idle controller for
// MINUTES (3). The API server is real, the pods are played.
func BenchmarkController(b *testing.B) {
	objects, minutes := samples.Setting(b, "OBJECTS", claimedObjects), samples.Setting(b, "MINUTES", 3)
	w := newWorld(b)
	var ready, readyRequests, perMinute, used, memory, peak samples.Set
	for b.Loop() {
		began := time.Now()
		pid := w.startController(b)
		for i := range objects {
			object := &v1alpha1.CustomScheduler{ObjectMeta: metav1.ObjectMeta{
				Namespace: w.ns, Name: fmt.Sprintf("scheduler-%03d", i)}}
			object.Spec.Source = v1alpha1.Source{Branch: apiserver.Release}
			object.Spec.Image = v1alpha1.Image{Reference: "localhost/scheduler:v1"}
			if err := w.kube.Create(b.Context(), object); err != nil {
				b.Fatal(err)
			}
		}
		w.awaitReady(b, objects)
		ready, readyRequests = append(ready, time.Since(began).Seconds()), append(readyRequests, float64(w.requests(b)))
		b.Logf("until all are ready: %s", most(w.sent(b)))
		for range minutes {
			sent, cpu := w.requests(b), run.CPUOf(b, pid).Seconds()
			time.Sleep(time.Minute)
			perMinute, used = append(perMinute, float64(w.requests(b)-sent)), append(used, run.CPUOf(b, pid).Seconds()-cpu)
			memory = append(memory, run.MemoryOf(b, pid, "VmRSS"))
		}
		peak = append(peak, run.MemoryOf(b, pid, "VmHWM"))
		b.Logf("%d objects; each minute: %.0f requests, CPU %.2f s; memory %.0f MiB; last minute: %s", objects, perMinute,
			used, memory, most(w.sent(b)[len(w.sent(b))-int(perMinute[len(perMinute)-1]):]))
	}
	b.ReportMetric(ready.Mean(), "until-ready-s")
	b.ReportMetric(readyRequests.Mean(), "until-ready-requests")
	b.ReportMetric(perMinute.Median(), "requests/min")
	b.ReportMetric(used.Median(), "cpu-s/min")
	b.ReportMetric(slices.Max(memory), "MiB")
	b.ReportMetric(slices.Max(peak), "peak-MiB")
	if objects == claimedObjects {
		const page = "docs/controller.md"
		samples.Claim(page, "all deployed and verified, 4 at a time | 111 s, 30,500 requests").
			AtMost(b, "requests until all are ready", slices.Max(readyRequests), 45_000)
		samples.Claim(page, "memory | 84 MiB, at most 88 MiB").AtMost(b, "MiB", slices.Max(peak), 150)
		samples.Claim(page, "afterwards, in each minute | 60 requests").
			AtMost(b, "requests in a minute", perMinute.Median(), 150)
	}
}

// world is a cluster with the objects of a controller.
type world struct {
	ns, log string
	server  *apiserver.Server
	kube    client.Client
}

func newWorld(b *testing.B) *world {
	b.Helper()
	w := &world{}
	var err error
	if w.server, w.log, err = apiserver.StartAudited(b.Context(), b.TempDir()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := w.server.Close(); err != nil {
			b.Error(err)
		}
	})
	w.ns = w.server.Namespace(b)
	w.kube = controllers.Install(b, w.server, w.ns)
	w.server.Play(b, w.ns, func(string) apiserver.Behavior { return apiserver.Works })
	return w
}

// startController starts the controller with the permissions of its ServiceAccount, and returns its
// process ID.
func (w *world) startController(b *testing.B) (pid int) {
	b.Helper()
	kubeconfig := filepath.Join(b.TempDir(), "kubeconfig")
	if err := w.server.WriteKubeconfig(kubeconfig, "system:serviceaccount:"+w.ns+":"+controller.Name); err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(run.Context(b), run.Program(b), "--kubeconfig", kubeconfig, "--node-root", "none",
		"--cache-dir", b.TempDir(), "--namespace", w.ns, "controller", "run", "--metrics-address", "0", "--health-address",
		"0", "--stable-for", "1s")
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		if err := cmd.Wait(); err != nil {
			b.Errorf("the controller: %v\n%s", err, &output)
		}
	})
	return cmd.Process.Pid
}

func (w *world) awaitReady(b *testing.B, objects int) {
	b.Helper()
	run.Eventually(b, "all schedulers are ready", func(ctx context.Context) (bool, string) {
		var list v1alpha1.CustomSchedulerList
		if err := w.kube.List(ctx, &list, client.InNamespace(w.ns)); err != nil {
			return false, err.Error()
		}
		ready := 0
		for _, object := range list.Items {
			if meta.IsStatusConditionTrue(object.Status.Conditions, v1alpha1.ConditionReady) {
				ready++
			}
		}
		return ready == objects, fmt.Sprintf("%d are ready", ready)
	})
}

// requests counts the requests of pmk-sched so far.
func (w *world) requests(b *testing.B) int { return len(w.sent(b)) }

// sent are the requests of pmk-sched so far.
func (w *world) sent(b *testing.B) []audit.Request {
	b.Helper()
	found, err := audit.Requests(w.log, "pmk-sched/")
	if err != nil {
		b.Fatal(err)
	}
	return found
}

// most describes the most frequent requests.
func most(all []audit.Request) string {
	counts := map[string]int{}
	for _, r := range all {
		counts[strings.Join([]string{r.Verb, r.Resource, r.Subresource}, " ")]++
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return counts[b] - counts[a] })
	var text []string
	for _, name := range names[:min(12, len(names))] {
		text = append(text, fmt.Sprintf("%d %s", counts[name], strings.TrimSpace(name)))
	}
	return strings.Join(text, ", ")
}
