//go:build linux

package build

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
)

// readIndex reads and validates a release index.
func readIndex(t *testing.T, text []byte) *v1alpha1.SchedulerReleases {
	t.Helper()
	index, err := v1alpha1.DecodeReleases(text)
	if err == nil {
		err = index.Validate()
	}
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return index
}

// The index of a push names images by digest, and is in the registry next to them.
func TestReleaseIndexIsPushedNextToTheImages(t *testing.T) {
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(s.Close)
	repository := strings.TrimPrefix(s.URL, "http://") + "/sched/kube-scheduler"
	dir := t.TempDir()
	pmkSched(t, dir, "build", "--branches", "v1.24.3", "--busybox", "/bin/busybox", "--tag", repository+":{release}",
		"--push", "--index", "releases.yaml").OK(t)
	text, err := os.ReadFile(filepath.Join(dir, "releases.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	release, err := readIndex(t, text).For("v1.24.17-eks-1")
	if err != nil {
		t.Fatal(err)
	}
	if release.Release != "v1.24.3" || !strings.HasPrefix(release.Image, repository+"@sha256:") || release.Inputs == "" ||
		!strings.Contains(string(release.Configuration), "kubescheduler.config.k8s.io/v1beta3") {
		t.Errorf("got %+v", release)
	}
	tag, err := name.NewTag(repository + ":releases")
	if err != nil {
		t.Fatal(err)
	}
	artifact, err := remote.Image(tag)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := artifact.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatal(layers, err)
	}
	content, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	if pushed, err := io.ReadAll(content); err != nil || string(pushed) != string(text) {
		t.Errorf("the registry has another index, %v:\n%s", err, pushed)
	}
	chart := filepath.Join(dir, "chart")
	pmkSched(t, dir, "render", "chart", "--name", "my-scheduler", "--releases", "releases.yaml", "--to-dir", chart).OK(t)
	values, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil || !strings.Contains(string(values), "image: "+release.Image) {
		t.Errorf("the chart has no %s, %v:\n%s", release.Image, err, values)
	}
}

func TestReleasesThatCannotBeBuiltLeaveNothing(t *testing.T) {
	for want, args := range map[string][]string{
		"require each other":                     {"--branches", "v1.24.3"},
		"--branches and --lock exclude":          {"--branches", "v1.24.3", "--index", "i.yaml", "--lock"},
		"images of all releases have the name":   {"--branches", "v1.24.3,v1.29.2", "--index", "i.yaml", "--tag", "localhost/s:v1"},
		"--branches has release v1.24.3 twice":   {"--branches", "v1.24.3,v1.24.3", "--index", "i.yaml"},
		`release v1.99.1: `:                      {"--branches", "v1.24.3,v1.99.1", "--index", "i.yaml"},
		"--branches and --archive a.tar exclude": {"--branches", "v1.24.3", "--index", "i.yaml", "--archive", "a.tar"},
	} {
		dir := t.TempDir()
		pmkSched(t, dir, append([]string{"build", "--busybox", "/bin/busybox"}, args...)...).Fails(t, 2, want)
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("%v left %v, %v", args, entries, err)
		}
	}
}
