package main

import (
	"os"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
)

// readPlan plans the scheduler that the flags describe.
func readPlan(c *cli.Context, u *ui) (*deploy.Plan, error) {
	sp, err := readSpec(c, u)
	if err != nil {
		return nil, err
	}
	return lifecycle.Plan(c.Context, u.Session, sp, c.Bool("offline"))
}

// rendered writes objects as --output and --to-file say.
func (u *ui) rendered(c *cli.Context, objects []*unstructured.Unstructured) error {
	text, err := manifest.YAML(objects, manifest.RenderOptions{})
	if err != nil {
		return err
	}
	return u.objects(c.String("output"), c.String("to-file"), text)
}

func offlineFlag() cli.Flag {
	return &cli.BoolFlag{Name: "offline", Usage: "do not connect to a cluster; requires --branch"}
}

func showSecretsFlag() cli.Flag {
	return &cli.BoolFlag{Name: "show-secrets", Usage: "print keys too, so that the output can be applied"}
}

func toDirFlag() cli.Flag {
	return &cli.StringFlag{Name: "to-dir", Usage: "write to `DIR`, which is new or empty (required)"}
}

// readNewDir returns the directory from toDirFlag.
func readNewDir(c *cli.Context) (string, error) {
	dir := c.String("to-dir")
	if dir == "" {
		return "", problem.Invalidf("", "--to-dir is required")
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return "", problem.Invalidf("", "write to %s: the directory is not empty", dir)
	}
	return dir, nil
}
