package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
)

// buildReleases is build --branches.
func buildReleases(c *cli.Context, u *ui) error {
	if !c.IsSet("branches") || !c.IsSet("index") {
		return problem.Invalidf("`pmk-sched build --branches v1.29,v1.34 --index releases.yaml`",
			"--branches and --index require each other")
	}
	err := exclude(c, "build one release with --branch", "branches", "branch", "binary", "keep", "lock", "locked",
		"sbom", "provenance", "vex", "source")
	if err != nil {
		return err
	}
	sp, err := spec.Read(spec.Flags{
		File: c.String("file"), Stdin: u.In, Plugins: c.StringSlice("with"), Version: ownVersion(),
		CacheDir: u.Session.CacheDir,
	})
	if err != nil {
		return err
	}
	built, err := lifecycle.BuildReleases(c.Context, u.Session, sp, lifecycle.ReleasesOptions{
		Branches: strings.Split(c.String("branches"), ","), Build: readBuildFlags(c), Index: c.String("index"),
	})
	if err != nil {
		return err
	}
	return u.Data(c.String("output"), built, releasesTable(built))
}

func releasesTable(r *lifecycle.BuiltReleases) string {
	var p printer
	p.Row("RELEASE", "IMAGE", "DIGEST", "GO", "PLUGINS", "CACHED")
	for _, b := range r.Releases {
		p.Row(b.Release, b.Reference, b.Digest, b.Go, strings.Join(pack.PluginNames(b.Plugins), ","), b.Cached)
	}
	p.Row()
	p.Facts("index", r.Index, "artifact", r.Artifact)
	return p.String()
}
