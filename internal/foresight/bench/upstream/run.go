package upstream

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Request describes runs of scheduler_perf.
type Request struct {
	simulate.Input
	// Labels select workloads, as in docs/bench.md.
	Labels string
	// Samples is the number of measurements for each scheduler.
	Samples int
}

// Run runs upstream's scheduler_perf: the harness of the schedulers' release in one program
// with their plugins, and the workloads of that release with r.Labels as the filter of labels. It
// reads no cluster.
func Run(ctx context.Context, s *session.Session, r Request) (_ *Result, err error) {
	if r.Scheduler.Branch == pack.BranchAuto {
		return nil, problem.Invalidf("specify it, for example --branch v"+versions.Newest()+".0",
			"--upstream needs the release of the scheduler")
	}
	release, err := pack.ResolveBranch(ctx, s, r.Scheduler.Branch)
	if err != nil {
		return nil, err
	}
	if !release.Rules().PerfHarness {
		return nil, problem.Invalidf("use a release from v1.30.0 on, or bench without --upstream",
			"%s cannot run scheduler_perf with plugins: its harness is not exported", release)
	}
	dir, remove, err := safeio.MakeTemp("perf")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	h := &harness{Session: s, release: release, dir: dir, timeout: r.Timeout}
	if h.source, err = build.SourceDir(ctx, release, pack.Environment(s)); err != nil {
		return nil, err
	}
	h.modules = filepath.Dir(filepath.Dir(h.source)) // without k8s.io/kubernetes@…
	h.source = filepath.Join(h.source, "test", "integration", "scheduler_perf")
	runs, notes, err := h.selectRuns(r.Labels)
	if err != nil {
		return nil, err
	}
	r.Scheduler.Source = "this"
	for _, scheduler := range append([]pack.Scheduler{r.Scheduler}, r.Against...) {
		side, err := h.newSide(ctx, scheduler)
		if err != nil {
			return nil, fmt.Errorf("measure %s: %w", scheduler.Source, err)
		}
		h.sides = append(h.sides, side)
	}
	if h.etcd, err = simulate.FindEtcd(ctx, s, release); err != nil {
		return nil, err
	}
	result := &Result{Version: "v1", Release: release.String(), Labels: r.Labels, Samples: r.Samples, Notes: notes}
	return result, h.run(ctx, result, runs)
}

// harness runs upstream's harness for the schedulers that are measured.
type harness struct {
	*session.Session
	release versions.Release
	// modules is Go's module cache, source upstream's directory scheduler_perf in it, and dir a
	// directory for files.
	modules, source, dir string
	// etcd is the path of the program. The harness starts it, and the API server in its own process.
	etcd    string
	timeout time.Duration
	sides   []*harnessSide
}

// selectRuns returns the workloads whose labels match filter, and notes about topics that cannot
// run.
func (h *harness) selectRuns(filter string) (runs []selection, notes []string, err error) {
	err = filepath.WalkDir(h.source, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() != configFile {
			return err
		}
		dir, err := filepath.Rel(h.source, filepath.Dir(path))
		if err != nil {
			return err
		}
		topic := ""
		if h.release.Rules().PerfTopics {
			var options string
			topic, options, err = readTopic(filepath.Dir(path))
			switch {
			case err != nil:
				return err
			case topic == "":
				notes = append(notes, dir+" left out: upstream has no benchmark for it")
				return nil
			case options != "":
				notes = append(notes, dir+" left out: only upstream's own test passes "+options)
				return nil
			}
		} else {
			dir = "." // the paths in the file are relative to the directory above
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		selected, err := selectWorkloads(text, dir, topic, filter)
		runs = append(runs, selected...)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read workloads of %s: %w", h.release, err)
	}
	if len(runs) == 0 {
		return nil, nil, problem.Invalidf("for example integration-test, performance, or performance,short",
			"%s has no workload with the labels %q", h.release, filter)
	}
	return runs, notes, nil
}

// readTopic returns the topic of a directory, and the options of its own test.
func readTopic(dir string) (topic, options string, err error) {
	tests, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return "", "", err
	}
	for _, test := range tests {
		text, err := os.ReadFile(test)
		if err != nil {
			return "", "", err
		}
		if topic, options = topicOf(text); topic != "" {
			break
		}
	}
	return topic, options, nil
}

// measurable returns the runs that are possible with all schedulers, and a note about each of the
// others.
func (h *harness) measurable(runs []selection) (some []selection, notes []string) {
	if !h.changed() {
		return runs, nil
	}
	for _, r := range runs {
		if r.configured {
			notes = append(notes, r.name()+" left out: it has a configuration of the scheduler itself")
		} else {
			some = append(some, r)
		}
	}
	return some, notes
}

// run runs each workload, its samples with all schedulers in turn.
func (h *harness) run(ctx context.Context, result *Result, runs []selection) error {
	passed := false
	runs, notes := h.measurable(runs)
	result.Notes = append(result.Notes, notes...)
	for n, r := range runs {
		samples := make([][]outcome, len(h.sides))
		for i := range result.Samples {
			for j, side := range h.sides {
				step := fmt.Sprintf("%d of %d: %s, sample %d of %s", n+1, len(runs), r.name(), i+1, side.source)
				var sample outcome
				err := h.Step(step, func() (err error) {
					sample, err = h.sample(ctx, side, r)
					return err
				})
				if err != nil {
					return err
				}
				samples[j] = append(samples[j], sample)
				result.DataItems = append(result.DataItems, sample.items...)
				passed = passed || sample.failure == ""
			}
		}
		w := h.evaluate(r, samples)
		for _, side := range append([]Side{w.This}, w.Against...) { // a long run may be interrupted
			rate := "no rate"
			if side.Rate > 0 {
				rate = fmt.Sprintf("%.1f pods/s", side.Rate)
			}
			h.Note(fmt.Sprintf("%s, %s: %s, %s", w.Name, side.Source, side.Result, rate))
		}
		result.Workloads = append(result.Workloads, w)
	}
	switch {
	case len(result.Workloads) == 0:
		return problem.Invalidf("measure without --upstream", "no workload can run: %s", strings.Join(result.Notes, "; "))
	case !passed:
		return fmt.Errorf("run scheduler_perf of %s: no workload ended; %s: %s", h.release, result.Workloads[0].Name,
			result.Workloads[0].This.Reason)
	}
	result.note()
	return nil
}

func (h *harness) evaluate(r selection, samples [][]outcome) Workload {
	w := Workload{Name: r.name(), Topic: r.topic, Against: []Side{}}
	if r.threshold.Value > 0 {
		w.Threshold = &r.threshold
	}
	for i, side := range h.sides {
		s := evaluate(side.source, r.threshold, samples[i])
		if i == 0 {
			w.This = s
		} else {
			w.Against = append(w.Against, s)
		}
	}
	w.compare()
	return w
}

// sample runs a workload once.
func (h *harness) sample(ctx context.Context, side *harnessSide, r selection) (sample outcome, err error) {
	dir, err := os.MkdirTemp(h.dir, "run")
	if err != nil {
		return sample, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	limited, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	failed, err := h.execute(limited, side, r, dir)
	if ctx.Err() != nil {
		return sample, ctx.Err()
	}
	if limited.Err() != nil {
		sample.failure = fmt.Sprintf("it takes longer than %s", h.timeout)
		return sample, nil
	}
	if err != nil {
		return sample, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 && !failed {
		return sample, fmt.Errorf("run %s: the harness wrote no data items: %w", r.name(), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return sample, err
		}
		if sample.items, err = parseDataItems(text, side.source, h.release.String()); err != nil {
			return sample, err
		}
	}
	if failed {
		output, err := os.ReadFile(filepath.Join(dir, "output"))
		sample.failure = failureOf(string(output))
		return sample, err
	}
	return sample, nil
}

// execute runs the harness for a workload and reports whether it failed.
func (h *harness) execute(ctx context.Context, side *harnessSide, r selection, dir string) (failed bool, err error) {
	output, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		return false, err
	}
	defer output.Close()
	cmd := exec.CommandContext(ctx, side.program, "-test.run=^$", "-test.bench="+r.pattern(), "-test.benchtime=1x",
		"-test.timeout=0", "-perf-scheduling-label-filter=", "-data-items-dir="+dir)
	cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.Join(side.dir, r.dir), output, output
	// The harness finds etcd in PATH, and puts its data and socket into TMPDIR. It reads certificates
	// from the directory of its source, which a program without paths has below these two (pkgPath in
	// cmd/kube-apiserver/app/testing/testserver.go).
	cmd.Env = []string{"PATH=" + filepath.Dir(h.etcd), "TMPDIR=" + dir, topicVariable + "=" + r.topic,
		"TEST_SRCDIR=" + h.modules, "TEST_WORKSPACE=."}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // etcd ends with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var exit *exec.ExitError
	switch err := cmd.Run(); {
	case err == nil:
		return false, nil
	case errors.As(err, &exit):
		return true, nil
	default:
		return false, fmt.Errorf("run %s: %w", strings.TrimSuffix(program, ".test"), err)
	}
}
