package build

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/pmk-sched/pmk-sched/versions"
)

// CompleteModule completes go.mod and go.sum of the module in a directory, so that its packages and
// tests compile. It needs their imports in Go's module cache, or a module proxy.
func CompleteModule(ctx context.Context, dir string, e Environment) (err error) {
	j, err := newJob(e)
	if err != nil {
		return err
	}
	defer j.close(&err)
	golang, err := j.goTool.find(ctx)
	if err != nil {
		return err
	}
	step := "complete go.mod of " + dir
	out, err := j.goTool.run(ctx,
		golang.query(dir, "list", "-mod=mod", "-deps", "-test", "-f", "{{.ImportPath}}", "./..."))
	if err != nil {
		return failure(ctx, step, out.tail, err)
	}
	return nil
}

// ReleaseModule returns go.mod and go.sum for a module that is compiled against a Kubernetes
// release, like its plugins, and the Go version for building the release.
func ReleaseModule(
	ctx context.Context, release versions.Release, path string, e Environment,
) (_ map[string][]byte, goVersion string, err error) {
	j, err := newJob(e)
	if err != nil {
		return nil, "", err
	}
	defer j.close(&err)
	s, err := j.releases.read(ctx, release)
	if err != nil {
		return nil, "", err
	}
	got, err := j.releases.downloadStaging(ctx, release, s)
	if err != nil {
		return nil, "", err
	}
	files, err := generateModule(s, release.Staging(), got.GoSum, nil, nil)
	if err != nil {
		return nil, "", fmt.Errorf("generate a module for %s: %w", release, err)
	}
	files["go.mod"] = []byte("module " + path + strings.TrimPrefix(string(files["go.mod"]), "module "+generatedModule))
	named := cmp.Or(s.Go, release.Rules().Go)
	used, err := j.toolchains.find(ctx, named)
	switch {
	case ctx.Err() != nil:
		return nil, "", err
	case err != nil: // only the user's own tests need it, and it may be available by then
		return files, named, nil
	}
	return files, used.Used, nil
}
