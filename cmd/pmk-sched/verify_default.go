package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/staticpod"
	"github.com/pmk-sched/pmk-sched/internal/verify"
	"github.com/pmk-sched/pmk-sched/versions"
)

// defaultRequest says which replacement has to bind a pod that names no scheduler.
type defaultRequest struct {
	want, image string
	timeout     time.Duration
	keep, quiet bool
}

func verifyDefault(ctx context.Context, u *ui, cfg *rest.Config, r defaultRequest) (*verify.DefaultResult, error) {
	o := verify.DefaultOptions{
		Options:    verify.Options{Image: r.image, Timeout: r.timeout, Keep: r.keep, Log: u.log, OnStep: u.step},
		Annotation: staticpod.AnnotationReplacement, Binary: staticpod.AnnotationBinary, Want: r.want,
		Metrics: func(ctx context.Context, _ string) (string, error) { return schedulerMetrics(ctx, cfg) },
		Running: runningPrograms,
	}
	if r.quiet {
		o.OnStep = nil
	}
	return verify.DefaultScheduler(ctx, cfg, o)
}

// verifyReplaced is verify --default.
func verifyReplaced(c *cli.Context, u *ui) error {
	if c.String("name") != "" {
		return usagef("", "give one of --name and --default, not both")
	}
	if err := checkTimeout(c); err != nil {
		return err
	}
	cfg, err := connect(c, u)
	if err != nil {
		return err
	}
	v, err := verifyDefault(c.Context, u, cfg, defaultRequest{image: c.String("image"), timeout: c.Duration("timeout"), keep: c.Bool("keep")})
	if err != nil {
		return err
	}
	return u.data(c.String("o"), v, func(w io.Writer) error {
		if err := verificationTable(&v.Result)(w); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w, "leader\t%s\nstatic pod\t%s\nimage\t%s\nimage ID\t%s\nreplacement\t%s\n", v.Leader, v.SchedulerPod, v.Image, v.ImageID, v.Replacement)
		for _, row := range [][2]string{{"program", strings.Join(v.Programs, ", ")}, {"build", v.Build}} {
			if row[1] != "" && err == nil {
				_, err = fmt.Fprintf(w, "%s\t%s\n", row[0], row[1])
			}
		}
		return err
	})
}

// schedulerMetrics reads the metrics of the default scheduler of this machine with
// the certificate of the kubeconfig. The scheduler's own certificate is its own
// making, so that it is not looked at.
func schedulerMetrics(ctx context.Context, cfg *rest.Config) (_ string, err error) {
	own := rest.CopyConfig(cfg)
	own.Insecure, own.CAData, own.CAFile, own.ServerName = true, nil, "", ""
	own.Timeout = 5 * time.Second
	client, err := rest.HTTPClientFor(own)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://127.0.0.1:"+strconv.Itoa(versions.SecurePort)+"/metrics", nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the scheduler answers %s", response.Status)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, 16<<20))
	return string(text), err
}

// runningPrograms returns the SHA-256 of the programs that run in a container of this
// machine: its processes are in a control group that is named as the container is.
func runningPrograms(containerID string) (sums []string, err error) {
	if containerID == "" {
		return nil, errors.New("the container has no ID")
	}
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, err
	}
	for _, group := range groups {
		text, err := os.ReadFile(group)
		if err != nil || !bytes.Contains(text, []byte(containerID)) {
			continue
		}
		program, err := os.Open(filepath.Join(filepath.Dir(group), "exe"))
		if err != nil {
			continue // it has ended
		}
		sum := sha256.New()
		_, err = io.Copy(sum, program)
		if err = errors.Join(err, program.Close()); err != nil {
			return nil, err
		}
		sums = append(sums, hex.EncodeToString(sum.Sum(nil)))
	}
	if len(sums) == 0 {
		return nil, errors.New("no process of the container is seen here")
	}
	return sums, nil
}
