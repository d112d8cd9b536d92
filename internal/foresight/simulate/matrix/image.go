package matrix

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/cluster/sysdump/redact"
	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
)

const (
	// baseMemory is a simulation's memory, objectMemory the additional memory for each object in the
	// snapshot; docs/simulate.md has measurements.
	baseMemory, objectMemory = 512 << 20, 80 << 10
	// stepTime is the time for a step in addition to the scheduler: starting programs and loading
	// objects.
	stepTime = 10 * time.Minute
	// imageDir is the directory for files in a simulation image, imagePlan the plan's file.
	imageDir, imagePlan = "/opt/pmk-sched", "/opt/pmk-sched/matrix.json"
)

// JobRequest describes the Job that runs simulations on the cluster.
type JobRequest struct {
	// Image is the request for an image of pmk-sched itself, to which the programs and files are
	// added. Without a Tag it gets a unique name.
	Image pack.Request
	// Namespace is the Job's namespace. Node is the node on which all its pods run. If it is empty,
	// they run on any node.
	Namespace, Node string
	// Command is the pmk-sched command line that calls [RunCell].
	Command []string
}

// connect returns the [starter] that runs the simulations on the cluster.
func (r *JobRequest) connect(s *session.Session) (starter, error) {
	if err := pack.CheckStatic(r.Image.Self); err != nil {
		return nil, err
	}
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	release, err := inspect.ServerRelease(cfg)
	if err != nil {
		return nil, err
	}
	rules := release.Rules()
	if !rules.IndexedJobs {
		return nil, problem.Invalidf("run the simulations on this machine: leave --job out",
			"--job needs indexed Jobs, which Kubernetes has from 1.22 on: the cluster is %s", release)
	}
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	return func(ctx context.Context, s *session.Session, p *plan, parallel int, dir string) (runner, error) {
		o := &onCluster{jobs: newRunner(kube, s.Log, s.Warn)}
		steps := 0
		for _, sc := range p.Scenarios {
			steps = max(steps, len(sc))
		}
		o.job = Job{
			Namespace: r.Namespace, Command: append([]string{image.SelfPath}, r.Command...), Parallel: parallel,
			Node: r.Node, Arch: runtime.GOARCH, PerIndex: rules.BackoffLimitPerIndex,
			Memory: baseMemory + objectMemory*int64(p.objects), Timeout: time.Duration(steps) * (p.Timeout + stepTime),
		}
		o.job.Image, err = p.buildImage(ctx, s, r.Image, newName(), dir)
		return o, err
	}, nil
}

// newName returns a name for a Job.
func newName() string { return "pmk-sched-matrix-" + strings.ToLower(rand.Text()[:8]) }

// onCluster runs simulations on a cluster, as a Job each time.
type onCluster struct {
	jobs *Runner
	job  Job // without a name and simulations
}

func (o *onCluster) close() error { return nil }

func (o *onCluster) run(ctx context.Context, s *session.Session, cells []plannedCell) (_ []Outcome, err error) {
	job := o.job
	job.Name, job.Cells = newName(), len(cells)
	if job.List, err = packCells(cells); err != nil {
		return nil, err
	}
	s.Note(fmt.Sprintf("%s runs %s", job, plural.Count(job.Cells, "simulation")))
	return o.jobs.Run(ctx, job, func(index int) func(error) {
		return s.OnStep("simulate " + cells[index].name.String())
	})
}

// buildImage makes the image with everything that the simulations need, and returns its name. name
// is the Job's name.
func (p *plan) buildImage(
	ctx context.Context, s *session.Session, request pack.Request, name, dir string,
) (string, error) {
	for i := range p.Schedulers {
		scheduler := &p.Schedulers[i]
		if pack.CheckStatic(scheduler.Etcd) != nil { // the etcd of this machine needs libraries
			var err error
			if scheduler.Etcd, err = simulate.FindEtcd(ctx, s, scheduler.Scheduler.Release); err != nil {
				return "", err
			}
		}
	}
	var err error
	if request.Files, err = p.imageFiles(dir); err != nil {
		return "", err
	}
	if request.Tag == "" { // nodes do not load an image whose name they know
		request.Tag = "localhost/" + strings.Replace(name, "-matrix-", "-matrix:", 1)
	}
	built, err := pack.Run(ctx, request, s)
	if err != nil {
		return "", err
	}
	if request.Push { // another run may push to the same tag
		return built.Reference + "@" + built.Digest, nil
	}
	return built.Reference, nil
}

// imageFiles returns the files in an image for the plan, and the plan with their paths in the
// image, which it writes to dir.
func (p *plan) imageFiles(dir string) ([]image.File, error) {
	sources := slices.Clone(p.files)
	for _, programs := range p.Schedulers {
		if err := checkNoSecrets(programs.Scheduler); err != nil {
			return nil, err
		}
		sources = append(sources, programs.Scheduler.Program, programs.KubeAPIServer, programs.Etcd)
	}
	plan, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	slices.Sort(sources)
	var files []image.File
	for i, source := range slices.Compact(sources) {
		to := path.Join(imageDir, strconv.Itoa(i), filepath.Base(source))
		files = append(files, image.File{Path: to, Source: source, Mode: 0o755})
		from, err := json.Marshal(source)
		quoted, err2 := json.Marshal(to)
		if err := errors.Join(err, err2); err != nil {
			return nil, err
		}
		plan = bytes.ReplaceAll(plan, from, quoted)
	}
	file := filepath.Join(dir, path.Base(imagePlan))
	return append(files, image.File{Path: imagePlan, Source: file, Mode: 0o644}), os.WriteFile(file, plan, 0o600)
}

// checkNoSecrets refuses a scheduler whose configuration must not be in an image.
func checkNoSecrets(s kubescheduler.Scheduler) error {
	texts := [][]byte{s.Request.Configuration.Source}
	for _, e := range s.Request.Configuration.Extenders {
		texts = append(texts, []byte(strconv.Quote(e.URLPrefix)))
	}
	for _, plugin := range s.Plugins {
		texts = append(texts, plugin.Args)
	}
	for _, text := range texts {
		var value any
		if err := yaml.Unmarshal(text, &value); err != nil {
			return problem.Invalidf("", "read the configuration of scheduler %s: %w", s.Request.Source, err)
		}
		if !reflect.DeepEqual(value, redact.New().Value(value)) {
			return problem.Invalidf("remove it, or simulate this scheduler without --job",
				"the configuration of scheduler %s has a certificate, a key, a token or a password, which must not be in an image",
				s.Request.Source)
		}
	}
	return nil
}

// RunCell runs one simulation from a list in one of the Job's pods and writes its outcome to out.
// It fails only if there is none: a second attempt may succeed.
func RunCell(ctx context.Context, s *session.Session, list string, index int, out io.Writer) (err error) {
	text, err := os.ReadFile(imagePlan)
	if err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	p := &plan{}
	if err := json.Unmarshal(text, p); err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	cells, err := unpackCells(list)
	if err != nil {
		return err
	}
	if index < 0 || index >= len(cells) {
		return fmt.Errorf("simulation %d of %d does not exist", index, len(cells))
	}
	servers, err := simulate.NewServers(s.Quiet(), "simulate")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, servers.Close()) }()
	result, err := p.simulate(ctx, simulate.NewRuns(servers), cells[index])
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return writeOutcome(out, index, newOutcome(result, err))
}
