//go:build linux

package image_test

import (
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	programs "github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/versions"
)

// upstreamOptions returns the options of an image shaped like registry.k8s.io/kube-scheduler: the
// scheduler is in PATH, and the entrypoint is a program that fails with the scheduler's flags.
func upstreamOptions(scheduler string) image.Options {
	o := options()
	o.Files[host] = []image.File{{Path: "/go-runner", Source: busybox}, {Path: image.SchedulerPath, Source: scheduler}}
	o.Entrypoint = []string{"/go-runner"}
	return o
}

func TestSchedulerOfAnUpstreamImageRuns(t *testing.T) {
	needs(t, "containerd busybox-static", "containerd", "ctr", busybox)
	const release = "v1.24.3"
	parsed, err := versions.Parse(release)
	if err != nil {
		t.Fatal(err)
	}
	scheduler, err := controlplane.Build(t.Context(), programs.Options{Release: parsed})
	if err != nil {
		t.Fatal(err)
	}
	b := build(t, upstreamOptions(scheduler))
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	reference := strings.TrimPrefix(server.URL, "http://") + "/kube-scheduler:" + release
	if _, err := image.Push(t.Context(), b, reference, nil); err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string][]string{
		"kubeadm's command":                          {"kube-scheduler"},
		"the command of pods that pmk-sched deploys": {image.SchedulerPath},
		"kops' command":                              {"/go-runner", image.SchedulerPath},
		"no command":                                 nil,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			binary, err := pack.FindScheduler(t.Context(), t.TempDir(), reference, command, dir)
			if err != nil {
				t.Fatal(err)
			}
			if binary.Missing != "" {
				t.Errorf("the image has no %s", binary.Missing)
			}
			text, err := configcheck.Version(t.Context(), binary, dir)
			if err != nil || text != "Kubernetes "+release {
				t.Errorf("got %q, %v", text, err)
			}
		})
	}
	t.Run("flags", func(t *testing.T) { readsFlags(t, reference) })
	t.Run("in containerd", func(t *testing.T) {
		socket := startContainerd(t)
		const local = "registry.k8s.io/kube-scheduler:" + release
		if err := image.LoadContainerd(t.Context(), b, local, socket); err != nil {
			t.Fatal(err)
		}
		to := t.TempDir() + "/kube-scheduler"
		found, err := image.ExtractProgram(t.Context(), image.Source{Reference: local, Containerd: socket},
			[]string{"kube-scheduler"}, "", to)
		if err != nil || found != (image.Program{Path: image.SchedulerPath, Release: release}) {
			t.Fatalf("got %+v, %v", found, err)
		}
		got, err := os.ReadFile(to)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(scheduler)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Error("another program came back")
		}
	})
}

// readsFlags has the program read flags before it prints its version.
func readsFlags(t *testing.T, reference string) {
	dir := t.TempDir()
	binary, err := pack.FindScheduler(t.Context(), t.TempDir(), reference, []string{"kube-scheduler"}, dir)
	if err != nil {
		t.Fatal(err)
	}
	for flags, refused := range map[string]string{
		"--config=/none --leader_elect=false --v 4 --alsologtostderr": "",
		"--secure-port=10259 --port=0":                                "unknown flag: --port",
		"--experimental-bogus":                                        "unknown flag: --experimental-bogus",
		"--profiling maybe":                                           "does not take any arguments",
		"--kube-api-qps=many":                                         `invalid argument "many" for "--kube-api-qps"`,
	} {
		_, err := configcheck.Version(t.Context(), binary, dir, strings.Fields(flags)...)
		if refused == "" && err != nil || refused != "" && (!errors.As(err, new(*configcheck.FlagsError)) ||
			!strings.Contains(err.Error(), refused)) {
			t.Errorf("%s: got %v, want %q", flags, err, refused)
		}
	}
}
