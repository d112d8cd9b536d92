package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// harnessSide is a scheduler in upstream's harness.
type harnessSide struct {
	source, program string
	// dir is a copy of upstream's workloads. In it, test cases use the scheduler's configuration if
	// configured is set.
	dir        string
	configured bool
}

// changed reports whether a scheduler has a configuration of its own.
func (h *harness) changed() bool {
	return slices.ContainsFunc(h.sides, func(s *harnessSide) bool { return s.configured })
}

// newSide compiles the harness with a scheduler's plugins.
func (h *harness) newSide(ctx context.Context, r pack.Scheduler) (*harnessSide, error) {
	if r.Branch != pack.BranchAuto {
		release, err := pack.ResolveBranch(ctx, h.Session, r.Branch)
		if err != nil {
			return nil, err
		}
		if release != h.release {
			return nil, problem.Invalidf("", "expected a scheduler of %s, got %s: all run the workloads of one release",
				h.release, release)
		}
	}
	if r.From != "" || r.Recorded {
		return nil, problem.Invalidf("", "scheduler_perf runs only with Kubernetes and plugins from Go modules")
	}
	if _, err := h.configure(h.Quiet(), r, nil); errors.Is(err, errNotApplied) { // before the program is compiled
		return nil, err
	}
	test, err := generate(h.release, len(r.Plugins)+len(r.Imports) > 0)
	if err != nil {
		return nil, fmt.Errorf("generate %s: %w", program, err)
	}
	compiled, err := pack.CompileTest(ctx, h.Session, h.release, r, program, test)
	if err != nil {
		return nil, err
	}
	configuration, err := h.configure(h.Session, r, compiled.Plugins)
	if err != nil {
		return nil, err
	}
	side := &harnessSide{source: r.Source, program: compiled.Path, configured: configuration != nil,
		dir: filepath.Join(h.dir, strconv.Itoa(len(h.sides)))}
	return side, side.copyWorkloads(h.source, configuration)
}

// errNotApplied is returned for a scheduler with settings that the harness does not apply.
var errNotApplied = errors.New("not applied by scheduler_perf")

// withoutElection is the flag with which a scheduler that elects no leader is deployed. The harness
// elects none either.
const withoutElection = "--feature-gates=CoordinatedLeaderElection=false"

// configure returns the configuration of a scheduler with plugins for the harness, nil for the
// default one.
func (h *harness) configure(on *session.Session, r pack.Scheduler, plugins []profiles.Plugin) ([]byte, error) {
	r.Name = cmp.Or(r.Name, corev1.DefaultSchedulerName)
	scheduler := kubescheduler.Scheduler{Request: r, Release: h.release, Plugins: plugins}
	rendered, err := scheduler.Configure(on, "kubeconfig", 0)
	if err != nil {
		return nil, err
	}
	flags := slices.DeleteFunc(rendered.Args, func(flag string) bool { return flag == withoutElection })
	if len(flags) > 0 {
		return nil, problem.Invalidf("measure without --upstream", "flags of kube-scheduler are %w: %s", errNotApplied,
			strings.Join(flags, " "))
	}
	return harnessConfiguration(rendered.YAML, r.Name)
}

// harnessConfiguration returns the part of a scheduler's configuration that the harness applies. It
// is nil if that part is the release's default. The harness has its own clients, and its pods name
// the default scheduler, so the scheduler's profile gets that name.
func harnessConfiguration(text []byte, name string) ([]byte, error) {
	var all map[string]any
	if err := yaml.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("read rendered configuration: %w", err)
	}
	if extenders, _ := all["extenders"].([]any); len(extenders) > 0 {
		return nil, problem.Invalidf("measure without --upstream", "extenders are %w", errNotApplied)
	}
	kept := map[string]any{"apiVersion": all["apiVersion"], "kind": all["kind"]}
	changed := false
	for _, field := range []string{"parallelism", "percentageOfNodesToScore", "podInitialBackoffSeconds",
		"podMaxBackoffSeconds", "profiles"} {
		value, found := all[field]
		if !found {
			continue
		}
		kept[field] = value
		changed = changed || field != "profiles"
	}
	list, _ := kept["profiles"].([]any)
	for _, entry := range list {
		profile, _ := entry.(map[string]any)
		if profile["schedulerName"] == name {
			profile["schedulerName"] = corev1.DefaultSchedulerName
		}
		changed = changed || len(profile) > 1 || len(list) > 1
	}
	if !changed {
		return nil, nil
	}
	return yaml.Marshal(kept)
}

// copyWorkloads copies upstream's files to the side's directory. The test cases there use
// configuration unless it is nil.
func (s *harnessSide) copyWorkloads(source string, configuration []byte) error {
	file := filepath.Join(s.dir, "pmk-sched-configuration.yaml")
	err := filepath.WalkDir(source, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(source, path)
		if err != nil {
			return err
		}
		target := filepath.Join(s.dir, relative)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		if filepath.Ext(path) == ".go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil && configuration != nil && entry.Name() == configFile {
			text, err = setSchedulerConfig(text, file)
		}
		return errors.Join(err, os.WriteFile(target, text, 0o600))
	})
	if err == nil && configuration != nil {
		err = os.WriteFile(file, configuration, 0o600)
	}
	if err != nil {
		return fmt.Errorf("copy the workloads of scheduler_perf: %w", err)
	}
	return nil
}
