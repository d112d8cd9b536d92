package session

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/cluster"
	"github.com/pmk-sched/pmk-sched/internal/image"
	"github.com/pmk-sched/pmk-sched/internal/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/pack"
	"github.com/pmk-sched/pmk-sched/internal/problem"
	"github.com/pmk-sched/pmk-sched/internal/simulate/matrix"
	"github.com/pmk-sched/pmk-sched/versions"
)

const (
	// oldestIndexed is the minor release from which on Jobs can be indexed by default, and oldestPerIndex the one with a limit for each index.
	oldestIndexed, oldestPerIndex = 22, 29
	// baseMemory and objectMemory are what a simulation needs, and for each object of the snapshot; see docs/simulate.md for measurements.
	baseMemory, objectMemory = 512 << 20, 80 << 10
	// stepTime is how long a step may take in addition to the scheduler: starting programs and loading objects.
	stepTime = 10 * time.Minute
)

// MatrixJob says how to run simulations on the cluster.
type MatrixJob struct {
	// Image is the request for an image of pmk-sched itself, to which the programs and files of the simulations are added. Without a Tag its name has a hash of
	// them.
	Image pack.Request
	// Namespace has the Job. Node is the node on which all of its pods run; empty: any.
	Namespace, Node string
	// Command is the command line of pmk-sched that calls [Session.SimulateCell].
	Command []string
}

// matrixJob returns the function that runs the simulations of a plan on the cluster.
func (s *Session) matrixJob(r *MatrixJob) (func(ctx context.Context, p *matrixPlan, parallel int, dir string) ([]matrix.Outcome, error), error) {
	if err := pack.CheckStatic(r.Image.Self); err != nil {
		return nil, err
	}
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	release, err := cluster.ServerRelease(cfg)
	if err != nil {
		return nil, err
	}
	if release.Minor < oldestIndexed {
		return nil, problem.Invalidf("run the simulations on this machine: leave --job out",
			"--job needs indexed Jobs, which Kubernetes has from 1.%d on: the cluster is %s", oldestIndexed, release)
	}
	return func(ctx context.Context, p *matrixPlan, parallel int, dir string) ([]matrix.Outcome, error) {
		return s.runMatrixJob(ctx, cfg, release, r, p, parallel, dir)
	}, nil
}

func (s *Session) runMatrixJob(ctx context.Context, cfg *rest.Config, release versions.Release, r *MatrixJob, p *matrixPlan, parallel int, dir string) ([]matrix.Outcome, error) {
	reference, err := s.buildMatrixImage(ctx, r.Image, p, dir)
	if err != nil {
		return nil, err
	}
	kube, err := kubernetes.NewForConfig(kubeapi.ClientConfig(cfg, s.Log))
	if err != nil {
		return nil, fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	steps := 0
	for _, sc := range p.Scenarios {
		steps = max(steps, len(sc))
	}
	job := matrix.Job{
		Name: "pmk-sched-matrix-" + strings.ToLower(rand.Text()[:8]), Namespace: r.Namespace, Image: reference,
		Command: append([]string{image.SelfPath}, r.Command...), Cells: len(p.Cells), Parallel: parallel, Node: r.Node, Arch: runtime.GOARCH,
		Memory: baseMemory + objectMemory*int64(p.objects), Timeout: time.Duration(steps) * (p.Timeout + stepTime), PerIndex: release.Minor >= oldestPerIndex,
	}
	s.Note(fmt.Sprintf("%s runs %d simulations", job, job.Cells))
	return matrix.NewRunner(kube, s.Log).Run(ctx, job, func(index int) func(error) {
		return s.OnStep("simulate " + p.Cells[index].name.String())
	})
}

// buildMatrixImage makes the image with everything that the simulations need, and returns its name.
func (s *Session) buildMatrixImage(ctx context.Context, request pack.Request, p *matrixPlan, dir string) (string, error) {
	for i := range p.Schedulers {
		scheduler := &p.Schedulers[i]
		if pack.CheckStatic(scheduler.Etcd) != nil { // that of this machine needs libraries
			var err error
			if scheduler.Etcd, err = s.compiledEtcd(ctx); err != nil {
				return "", err
			}
		}
	}
	files, err := p.imageFiles(dir)
	if err != nil {
		return "", err
	}
	request.Files = files
	if request.Tag == "" {
		hash, err := hashFiles(append([]image.File{{Source: request.Self}}, files...))
		if err != nil {
			return "", err
		}
		request.Tag = "localhost/pmk-sched-matrix:" + hash
	}
	built, err := s.Build(ctx, request)
	if err != nil {
		return "", err
	}
	if request.Push { // another run may push to the same tag
		return built.Reference + "@" + built.Digest, nil
	}
	return built.Reference, nil
}

// SimulateCell runs one simulation in a pod of [Session.SimulateMatrix] and writes its outcome to out. It fails only if there is none to write: another
// attempt may succeed.
func (s *Session) SimulateCell(ctx context.Context, index int, out io.Writer) error {
	text, err := os.ReadFile(imagePlan)
	if err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	p := &matrixPlan{}
	if err := json.Unmarshal(text, p); err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	if index < 0 || index >= len(p.Cells) {
		return fmt.Errorf("simulation %d of %d does not exist", index, len(p.Cells))
	}
	result, err := s.simulateCell(ctx, p, index)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return matrix.WriteOutcome(out, index, matrix.NewOutcome(result, err))
}
