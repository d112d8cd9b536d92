package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/build"
	"github.com/pmk-sched/pmk-sched/internal/pack"
	"github.com/pmk-sched/pmk-sched/internal/problem"
	"github.com/pmk-sched/pmk-sched/internal/simulate"
	"github.com/pmk-sched/pmk-sched/internal/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/snapshot/archive"
	"github.com/pmk-sched/pmk-sched/internal/snapshot/spool"
	"github.com/pmk-sched/pmk-sched/internal/spec"
	"github.com/pmk-sched/pmk-sched/internal/tempdir"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// SimulateRequest says what to simulate.
type SimulateRequest struct {
	Scenario  scenario.Scenario
	Scheduler spec.Simulated
	// Snapshot is a file; empty: a snapshot of the cluster is taken.
	Snapshot string
	// Timeout bounds the time that the scheduler gets to decide about all pods.
	Timeout time.Duration
	// Version is that of pmk-sched.
	Version string
}

// Simulate runs a scenario with a scheduler on a snapshot. The cluster is only read, and not at all if there is a file.
func (s *Session) Simulate(ctx context.Context, r SimulateRequest) (*report.Report, error) {
	var result *report.Report
	if r.Snapshot == "" {
		err := s.takeSnapshot(ctx, SnapshotRequest{Version: r.Version}, func(h *snapshot.Header, objects *spool.Spool) (err error) {
			result, err = s.simulate(ctx, r, h, stored{h, objects})
			return err
		})
		return result, err
	}
	file, err := os.Open(r.Snapshot)
	if err != nil {
		return nil, problem.Invalidf("", "read snapshot: %w", err)
	}
	defer file.Close()
	read, err := archive.NewReader(file, archive.Limits{})
	if err != nil {
		return nil, err
	}
	h := read.Header()
	return s.simulate(ctx, r, &h, read)
}

// stored are the objects of a snapshot that is not a file.
type stored struct {
	header  *snapshot.Header
	objects *spool.Spool
}

// Each implements [simulate.Snapshot].
func (s stored) Each(do func(kind *snapshot.Kind, version string, object map[string]any) error) error {
	kinds := snapshot.Kinds()
	for i := range s.header.Resources {
		r := &s.header.Resources[i]
		kind, version := snapshot.Find(kinds, snapshot.APIVersion(r.Group, r.Version), r.Kind)
		if kind == nil {
			continue // a custom kind, whose definition the simulation does not have
		}
		err := s.objects.Each(groupResource(r), func(_ string, text []byte) error {
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

// simulate has the programs compiled and runs the scenario.
func (s *Session) simulate(ctx context.Context, r SimulateRequest, h *snapshot.Header, objects simulate.Snapshot) (result *report.Report, err error) {
	r.Scheduler.Name = cmp.Or(r.Scheduler.Name, corev1.DefaultSchedulerName)
	release, err := s.simulatedRelease(ctx, r.Scheduler.Branch, h)
	if err != nil {
		return nil, err
	}
	compiled, err := pack.Compile(ctx, s.buildEnv(), release, r.Scheduler.Plugins, r.Scheduler.Imports)
	if err != nil {
		return nil, err
	}
	o := simulate.Options{Scenario: r.Scenario, Snapshot: objects, Timeout: r.Timeout, OnStep: s.OnStep, Log: s.Log}
	if o.KubeAPIServer, err = s.kubeAPIServer(ctx, release); err != nil {
		return nil, err
	}
	if o.Etcd, err = s.etcd(ctx); err != nil {
		return nil, err
	}
	o.Scheduler = simulate.Scheduler{
		Program: compiled.Path, Release: release, Name: r.Scheduler.Name,
		Configuration: func(kubeconfig string, insecurePort int) (*simulate.Configuration, error) {
			return s.simulatedConfiguration(r.Scheduler, release, compiled.Plugins, kubeconfig, insecurePort)
		},
	}
	dir, remove, err := tempdir.Make("simulate")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	o.Dir = dir
	result, err = simulate.Run(ctx, o)
	if err == nil && !h.Consistent {
		result.Notes = append(result.Notes, "the objects of the snapshot may be of several moments")
	}
	return result, err
}

// simulatedRelease returns the release of a branch, by default that of the snapshot.
func (s *Session) simulatedRelease(ctx context.Context, branch string, h *snapshot.Header) (versions.Release, error) {
	if branch == pack.BranchAuto {
		if h.Release == "" {
			return versions.Release{}, problem.Invalidf("specify it, for example --branch v1.24.3", "the snapshot does not have the release of its cluster")
		}
		branch = h.Release
	}
	return s.ResolveBranch(ctx, branch)
}

// kubeAPIServer returns the path of the kube-apiserver of a release.
func (s *Session) kubeAPIServer(ctx context.Context, release versions.Release) (string, error) {
	const program = "kube-apiserver"
	built, err := build.Run(ctx, build.Options{
		Release: release, Programs: []build.Program{{Name: program}}, CacheDir: s.CacheDir, Env: s.Environ, Log: s.Log, OnStep: s.OnStep,
	})
	return programPath(built, err, program)
}

// etcd returns the path of the etcd in PATH, or compiles one.
func (s *Session) etcd(ctx context.Context) (string, error) {
	const program = "etcd"
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	built, err := build.Module(ctx, build.ModuleOptions{
		Module: build.EtcdModule, Version: build.EtcdVersion, Packages: []build.Program{{Name: program, Package: build.EtcdModule}},
		CacheDir: s.CacheDir, Env: s.Environ, Log: s.Log, OnStep: s.OnStep,
	})
	return programPath(built, err, program)
}

func programPath(built *build.Result, err error, program string) (string, error) {
	if err != nil {
		return "", err
	}
	binary, ok := built.Binary(program, build.Host())
	if !ok {
		return "", fmt.Errorf("build %s: no binary for %s", program, build.Host())
	}
	return binary.Path, nil
}

// simulatedConfiguration renders the configuration of the scheduler for the simulation.
func (s *Session) simulatedConfiguration(r spec.Simulated, release versions.Release, plugins []profiles.Plugin, kubeconfig string, insecurePort int) (*simulate.Configuration, error) {
	rendered, err := profiles.Render(profiles.Request{
		Release: release, SchedulerName: r.Name, Kubeconfig: kubeconfig, InsecurePort: insecurePort,
		Preset: r.Preset, Source: r.Configuration, SourceName: r.ConfigurationName, Lossy: r.Lossy, Enable: plugins,
	})
	if err != nil {
		return nil, err
	}
	notes, warnings := profiles.SplitNotes(rendered.Notes, r.ConfigurationName)
	for _, note := range notes {
		s.Note(note)
	}
	for _, warning := range warnings {
		s.Warn(warning)
	}
	var document struct {
		Profiles []struct {
			SchedulerName string `json:"schedulerName"`
		} `json:"profiles"`
	}
	if err := yaml.Unmarshal(rendered.YAML, &document); err != nil {
		return nil, fmt.Errorf("read rendered configuration: %w", err)
	}
	c := &simulate.Configuration{YAML: rendered.YAML, Args: rendered.Args}
	for _, profile := range document.Profiles {
		c.Profiles = append(c.Profiles, profile.SchedulerName)
	}
	return c, nil
}
