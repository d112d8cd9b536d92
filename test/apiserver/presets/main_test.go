//go:build linux

// Package presets shows what each preset does to real placements: the kube-scheduler of a release, with the rendered preset, against a
// real API server. Nodes are objects without kubelets, since where a pod is bound is the scheduler's work alone.
package presets

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/build"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/versions"
)

// What TestMain makes for all tests: an API server, a client that may do everything, and the program that is tried.
var (
	server    *apiserver.Server
	kube      kubernetes.Interface
	scheduler string
	release   versions.Release
)

func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code, err := runAll(ctx, m)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runAll(ctx context.Context, m *testing.M) (code int, err error) {
	if release, err = versions.Parse(apiserver.Release); err != nil {
		return 1, err
	}
	if scheduler, err = controlplane.Build(ctx, build.Options{Release: release}); err != nil {
		return 1, err
	}
	binaries, err := apiserver.FindBinaries(ctx)
	if err != nil {
		return 1, err
	}
	if server, err = apiserver.Start(ctx, binaries); err != nil {
		return 1, err
	}
	defer func() {
		if closed := server.Close(); err == nil {
			err = closed
		}
	}()
	if kube, err = kubernetes.NewForConfig(server.Config()); err != nil {
		return 1, err
	}
	return m.Run(), nil
}
