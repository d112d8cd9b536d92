//go:build linux

// Package gitops surrounds a GitOps engine for tests: a management cluster for the engine, a Git
// repository with the chart of several releases, and clusters that the test upgrades.
package gitops

import (
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// ChartPath is the directory of the chart in a [Repository].
const ChartPath = "chart"

// Repository is a Git repository that git's own server serves over HTTP on loopback.
type Repository struct {
	// URL is its address.
	URL string

	dir string
}

// NewRepository returns a repository without commits. It is served until the test ends.
func NewRepository(t testing.TB) *Repository {
	t.Helper()
	root := t.TempDir()
	r := &Repository{dir: filepath.Join(root, "schedulers")}
	git(t, root, "init", "--quiet", "--initial-branch=main", r.dir)
	programs := strings.TrimSpace(git(t, root, "--exec-path"))
	server := httptest.NewServer(&cgi.Handler{
		Path: filepath.Join(programs, "git-http-backend"), Dir: root,
		Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"},
	})
	t.Cleanup(server.Close)
	r.URL = server.URL + "/schedulers"
	return r
}

// CommitChart commits the chart of a release index, as `build --branches` and `render chart`
// would write them, and returns the commit.
func (r *Repository) CommitChart(t testing.TB, index string) string {
	t.Helper()
	chart := filepath.Join(r.dir, ChartPath)
	if err := os.RemoveAll(chart); err != nil {
		t.Fatal(err)
	}
	run.PMKSched(t, "render", "chart", "--name", Scheduler, "--releases", run.WriteFile(t, "releases.yaml", index),
		"--to-dir", chart).OK(t)
	git(t, r.dir, "add", "--all")
	git(t, r.dir, "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "--quiet", "--message", "the chart")
	return strings.TrimSpace(git(t, r.dir, "rev-parse", "HEAD"))
}

func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(run.Context(t), "git", args...)
	cmd.Dir = dir
	return run.Command(t, cmd).OK(t).Stdout
}
