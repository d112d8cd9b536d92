package main

import (
	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
)

func readBuildSpec(c *cli.Context, u *ui) (*spec.Spec, error) {
	return spec.Read(spec.Flags{File: c.String("file"), Stdin: u.In, Branch: c.String("branch"), Version: ownVersion()})
}

func readBuildFlags(c *cli.Context) spec.BuildFlags {
	return spec.BuildFlags{
		Source: c.String("source"), Go: c.String("go"), Platforms: c.StringSlice("platform"), Base: c.String("base"),
		Busybox: c.String("busybox"), Tag: c.String("tag"),
		Archives: c.StringSlice("archive"), Load: c.StringSlice("load"), Push: c.Bool("push"), Binary: c.String("binary"),
		With: c.StringSlice("with"), Imports: c.StringSlice("import"), Nearest: c.Bool("nearest"), Keep: c.Bool("keep"),
		SignKey: c.String("sign-key"), SignName: c.String("sign-name"),
		SBOM: c.String("sbom"), Provenance: c.String("provenance"),
		Vulnerabilities: c.String("vulnerabilities"), VEX: c.String("vex"),
		Extender: c.Bool("extender"), Lock: c.Bool("lock"), Locked: c.Bool("locked"), Set: c.LocalFlagNames(),
	}
}
