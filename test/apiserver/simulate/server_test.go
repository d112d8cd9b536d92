//go:build linux

package simulate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/artifact/sandbox"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/decision"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/files"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/versions"
)

// simulators are the idle simulators, by release. A command would start its own API server.
var simulators struct {
	mu   sync.Mutex
	free map[string][]*simulator
}

func TestMain(m *testing.M) {
	if sandbox.Entering(os.Args) {
		os.Exit(sandbox.Enter(os.Args))
	}
	status := m.Run()
	for _, free := range simulators.free {
		for _, s := range free {
			if err := s.close(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				status = 1
			}
		}
	}
	os.Exit(status)
}

// atReleases runs a test with the programs of each release of [apiserver.Releases], in parallel
// with others.
func atReleases(t *testing.T, test func(t *testing.T, release string)) {
	t.Helper()
	t.Parallel()
	for _, release := range apiserver.Releases() {
		t.Run(release, func(t *testing.T) { test(t, release) })
	}
}

// simulator runs simulations with the scheduler of a release, one after the other.
type simulator struct {
	release   versions.Release
	scheduler string // the path of the program
	session   *session.Session
	server    *simulate.Server
	dir       string
	runs      int
}

// withSimulator calls do with a simulator of a release that no other test uses, and starts one if
// there is none.
func withSimulator(t *testing.T, release string, do func(*simulator) error) {
	t.Helper()
	s := takeSimulator(release)
	if s == nil {
		s = &simulator{}
		if err := s.start(t.Context(), release); err != nil {
			t.Fatal(errors.Join(err, s.close()))
		}
	}
	defer func() {
		simulators.mu.Lock()
		defer simulators.mu.Unlock()
		simulators.free[release] = append(simulators.free[release], s)
	}()
	if err := do(s); err != nil {
		t.Fatal(err)
	}
}

func takeSimulator(release string) *simulator {
	simulators.mu.Lock()
	defer simulators.mu.Unlock()
	if simulators.free == nil {
		simulators.free = map[string][]*simulator{}
	}
	free := simulators.free[release]
	if len(free) == 0 {
		return nil
	}
	simulators.free[release] = free[:len(free)-1]
	return free[len(free)-1]
}

func (s *simulator) start(ctx context.Context, release string) (err error) {
	if s.release, err = versions.Parse(release); err != nil {
		return err
	}
	if s.scheduler, err = controlplane.Build(ctx, build.Options{Release: s.release}); err != nil {
		return err
	}
	binaries, err := apiserver.BinariesOf(ctx, s.release)
	if err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "simulator-"); err != nil {
		return err
	}
	s.session = &session.Session{
		Log: zap.NewNop(), OnStep: func(string) func(error) { return func(error) {} }, Note: func(string) {},
		Warn: func(string) {},
	}
	programs := simulate.Programs{
		Scheduler: kubescheduler.Scheduler{Release: s.release}, KubeAPIServer: binaries.KubeAPIServer, Etcd: binaries.Etcd,
	}
	s.server, err = simulate.StartServer(ctx, s.session, programs, &simulate.Options{Dir: s.dir})
	return err
}

func (s *simulator) close() error {
	var err error
	if s.server != nil {
		err = s.server.Close()
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// options returns the options of a run with a scheduler.
func (s *simulator) options(t *testing.T, objects capture.Objects, scheduler pack.Scheduler) simulate.Options {
	t.Helper()
	s.runs++
	dir := filepath.Join(s.dir, strconv.Itoa(s.runs))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	scheduler.Name = corev1.DefaultSchedulerName
	s.session.Log = zaptest.NewLogger(t)
	return simulate.Options{
		Snapshot: objects, Dir: dir, Timeout: run.Patience,
		Scheduler: kubescheduler.Scheduler{Request: scheduler, Release: s.release, Program: s.scheduler},
	}
}

// whenLoaded calls a function when the objects are loaded.
type whenLoaded struct {
	simulate.Unobserved
	do func(ctx context.Context, cfg *rest.Config) error
}

func (o whenLoaded) Loaded(ctx context.Context, r *simulate.Run) error { return o.do(ctx, r.Config()) }

// presetScheduler has the configuration of a preset.
func presetScheduler(name string) pack.Scheduler {
	return pack.Scheduler{Configuration: profiles.Request{Preset: name}}
}

// simulated runs a scenario with a scheduler of [apiserver.Release] on manifests.
func simulated(t *testing.T, s scenario.Scenario, manifests string, scheduler pack.Scheduler) report.Report {
	t.Helper()
	return simulatedAt(t, apiserver.Release, s, manifests, scheduler)
}

// simulatedAt runs a scenario with a scheduler of a release on manifests.
func simulatedAt(t *testing.T, release string, s scenario.Scenario, manifests string,
	scheduler pack.Scheduler) report.Report {
	t.Helper()
	objects := newObjects(t, manifests)
	var r *report.Report
	withSimulator(t, release, func(sim *simulator) (err error) {
		o := sim.options(t, objects, scheduler)
		o.Scenario = s
		r, err = sim.server.Run(t.Context(), o)
		return err
	})
	return *r
}

// simulatePending schedules the pending pods of manifests with the default scheduler.
func simulatePending(t *testing.T, manifests string) report.Report {
	t.Helper()
	return simulated(t, scenario.Pending(), manifests, pack.Scheduler{})
}

// readManifests reads manifests as commands do.
func readManifests(t *testing.T, text string) (all []map[string]any) {
	t.Helper()
	_, err := files.Manifests(t.Context(), []string{run.WriteFile(t, "manifests.yaml", text)}, nil,
		func(o map[string]any) error {
			all = append(all, o)
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// simulateAdd schedules copies of the pods of manifests, in addition to the pods of a snapshot,
// with the default scheduler.
func simulateAdd(t *testing.T, snapshot, manifests string, count, limit int) report.Report {
	t.Helper()
	s, err := scenario.Add(readManifests(t, manifests), count, limit)
	if err != nil {
		t.Fatal(err)
	}
	return simulated(t, s, snapshot, pack.Scheduler{})
}

// explained explains a scheduler's decision about the pod web. If node is not empty, it compares
// that node with the selected one.
func explained(t *testing.T, manifests, release, node string, scheduler pack.Scheduler) decision.Result {
	t.Helper()
	objects := newObjects(t, manifests)
	var in *decision.Input
	withSimulator(t, release, func(sim *simulator) (err error) {
		in, err = decision.Observe(t.Context(), sim.server, sim.options(t, objects, scheduler), "shop", "web", "", true)
		return err
	})
	return *decision.New(*in, node)
}

// objects is a snapshot with the objects of manifests.
type objects struct {
	resources []snapshot.Resource
	spool     *capture.Spool
}

func newObjects(t *testing.T, manifests string) *objects {
	t.Helper()
	stored, err := capture.NewSpool(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stored.Close(); err != nil {
			t.Error(err)
		}
	})
	read, err := files.Read(t.Context(), snapshot.Kinds(), stored,
		files.Options{Paths: []string{run.WriteFile(t, "objects.yaml", manifests)}})
	if err != nil {
		t.Fatal(err)
	}
	o := &objects{read.Resources, stored}
	for i := range o.resources {
		stored.Sort(o.resources[i].GroupResource())
	}
	return o
}

// Each implements [capture.Objects].
func (o *objects) Each(do func(kind *snapshot.Kind, version string, object map[string]any) error) error {
	for _, r := range o.resources {
		kind, version := snapshot.Find(snapshot.Kinds(), snapshot.APIVersion(r.Group, r.Version), r.Kind)
		err := o.spool.Each(r.GroupResource(), func(_ string, text []byte) error {
			object, err := snapshot.Decode(text)
			if err != nil {
				return err
			}
			return do(kind, version, object)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// equal checks that got equals want.
func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
