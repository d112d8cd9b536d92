package main

import (
	"cmp"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/matrix"
)

func jobFlag() cli.Flag {
	return &cli.BoolFlag{Name: "job",
		Usage: "run the simulations on the cluster, in the namespace of --namespace; requires --push or --load"}
}

// jobFlags are the flags that need --job.
func jobFlags() []cli.Flag {
	return command.Shared("of a Job with simulations",
		&cli.StringFlag{Name: "node", Usage: "with --job: run all pods on the node `NAME` and tolerate its taints",
			DefaultText: "any node"},
		&cli.StringFlag{Name: "tag", Usage: "with --job: `REFERENCE` of the image with programs and snapshots",
			DefaultText: "localhost/pmk-sched-matrix:NAME"},
		&cli.BoolFlag{Name: "push",
			Usage: "with --job: push the image to its registry, with the credentials of the docker configuration"},
		&cli.StringSliceFlag{Name: "load",
			Usage: "with --job: load the image into `containerd[=SOCKET]` or docker on this machine"},
		&cli.StringFlag{Name: "base", Usage: "with --job: base `IMAGE`, as in `pmk-sched build`", DefaultText: "busybox"},
		&cli.StringFlag{Name: "busybox", Usage: "with --job: `PATH` of a static busybox to use as base, without a registry"},
	)
}

// readJob returns the Job that runs the simulations on the cluster, or nil without --job, and how
// many simulations run at the same time.
func readJob(c *cli.Context, u *ui) (job *matrix.JobRequest, parallel int, err error) {
	job, err = newJob(c, u)
	switch {
	case c.IsSet("parallel"):
		return job, c.Int("parallel"), err
	case job != nil:
		return job, defaultParallelJob, err
	}
	return nil, 1, err
}

func newJob(c *cli.Context, u *ui) (*matrix.JobRequest, error) {
	if !c.Bool("job") {
		for _, flag := range jobFlags() {
			if name := flag.Names()[0]; c.IsSet(name) {
				return nil, problem.Invalidf("", "--%s requires --job", name)
			}
		}
		return nil, nil
	}
	if !c.Bool("push") && len(c.StringSlice("load")) == 0 {
		return nil,
			problem.Invalidf("the pods need the image: push it to a registry, or load it into containerd of the node of --node",
				"--job requires --push or --load")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the executable of pmk-sched: %w", err)
	}
	sp, err := spec.Read(spec.Flags{Version: ownVersion()})
	if err != nil {
		return nil, err
	}
	image, err := sp.Build(spec.BuildFlags{
		Self: self, Base: c.String("base"), Busybox: c.String("busybox"), Tag: c.String("tag"), Push: c.Bool("push"),
		Load: c.StringSlice("load"),
	})
	if err != nil {
		return nil, err
	}
	image.Tag = c.String("tag")
	return &matrix.JobRequest{
		Image: image, Namespace: cmp.Or(u.Namespace, spec.DefaultNamespace), Node: c.String("node"),
		Command: []string{"--cache-dir", "/tmp/cache", simulateCell},
	}, nil
}
