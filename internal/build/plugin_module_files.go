package build

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/pmk-sched/pmk-sched/versions"
)

// CompleteModule has go complete go.mod and go.sum in a module's folder, so that
// its packages and tests compile as they are. It needs what they import in Go's
// module cache, or a module proxy.
func CompleteModule(ctx context.Context, dir string, o SourceOptions) (err error) {
	if o.CacheDir == "" {
		return noCache()
	}
	j := newJob(o.CacheDir, "", false, o.Env, o.Log, nil)
	defer j.close(&err)
	golang, err := j.findGo(ctx)
	if err != nil {
		return err
	}
	step := "complete go.mod of " + dir
	out, err := j.run(ctx, golang.asking(dir, "list", "-mod=mod", "-deps", "-test", "-f", "{{.ImportPath}}", "./..."))
	if err != nil {
		return failure(ctx, step, out.tail, err)
	}
	return nil
}

// ReleaseModule returns go.mod and go.sum of a module that is compiled against a
// release of Kubernetes, as plugins of it are, and the version of Go that builds of
// the release use: the one that it names, or the patch that stands for it.
func ReleaseModule(ctx context.Context, release versions.Release, path string, o SourceOptions) (_ map[string][]byte, goVersion string, err error) {
	if o.CacheDir == "" {
		return nil, "", noCache()
	}
	rules, _, err := versions.Select(release)
	if err != nil {
		return nil, "", err
	}
	j := newJob(o.CacheDir, "", false, o.Env, o.Log, nil)
	defer j.close(&err)
	s, err := j.release(ctx, release)
	if err != nil {
		return nil, "", err
	}
	got, err := j.fetchStaging(ctx, release, s)
	if err != nil {
		return nil, "", err
	}
	files, err := generateModule(s, release.Staging(), got.GoSum, nil, nil)
	if err != nil {
		return nil, "", fmt.Errorf("generate a module for %s: %w", release, err)
	}
	files["go.mod"] = []byte("module " + path + strings.TrimPrefix(string(files["go.mod"]), "module "+generatedModule))
	named := cmp.Or(s.Go, rules.Go)
	used, err := j.findToolchain(ctx, named)
	switch {
	case ctx.Err() != nil:
		return nil, "", err
	case err != nil: // it is for the person's own tests only, and may be had by then
		return files, named, nil
	}
	return files, used.Used, nil
}
