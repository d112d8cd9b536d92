package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
)

// buildFlags describe a scheduler to build and its image.
func buildFlags(u *ui) []cli.Flag {
	return slices.Concat([]cli.Flag{
		&cli.StringFlag{Name: "branch", Usage: "`RELEASE` to build: v1.24.3, or v1.24 or release-1.24 for its newest patch",
			DefaultText: "the cluster's"},
		&cli.StringFlag{Name: "branches",
			Usage: "build several `RELEASES`, separated by commas, and write --index; name the image with {release}"},
		&cli.StringFlag{Name: "index", Usage: "write the release index of --branches to `FILE`"},
		fileFlag(), withFlag(),
		&cli.StringSliceFlag{Name: "import", Usage: "import the `PACKAGE` for what it registers, such as a scheme"},
		&cli.BoolFlag{Name: "nearest",
			Usage: "build the nearest patch of the minor if a module of the release does not download"},
		unknownReleaseFlag(u),
		&cli.StringFlag{Name: "source", Usage: "compile `git:URL|git:DIR` instead of the release's modules"},
		&cli.StringFlag{Name: "go", Usage: "compile with Go `VERSION`: 1.26.8, 1.26 for its newest patch, or newest",
			DefaultText: "the version that the release names"},
		platformFlag(),
	}, imageFlags("localhost/kube-scheduler:RELEASE[-plugins-HASH]",
		&cli.StringFlag{Name: "binary", Usage: "write the program itself to `FILE`"},
		&cli.BoolFlag{Name: "lock",
			Usage: "write pmk-sched.lock next to the file of -f: modules with sums, Go, base and plugins of the image"},
		&cli.BoolFlag{Name: "locked", Usage: "fail if the build differs from pmk-sched.lock"},
		&cli.StringFlag{Name: "provenance", Usage: "write the SLSA provenance of the image to `FILE`"},
		&cli.StringFlag{Name: "vulnerabilities",
			Usage: "check with a copy of the Go vulnerability database in `DIR`; exit status 3 if one is called"},
		&cli.StringFlag{Name: "vex", Usage: "write vulnerabilities that are not called to `FILE` as CycloneDX VEX"},
		keepFlag(),
	))
}

// imageFlags describe the base, the name, the destinations and the documents of an image to build.
func imageFlags(tag string, more ...cli.Flag) []cli.Flag {
	return slices.Concat([]cli.Flag{
		&cli.StringFlag{Name: "tag", Usage: "`REFERENCE` of the image", DefaultText: tag},
	}, command.Shared("of an image to build",
		&cli.StringFlag{Name: "base",
			Usage: "base `IMAGE`: a registry reference, by digest if it must not change, a docker archive or an OCI " +
				"layout",
			DefaultText: "busybox"},
		&cli.StringFlag{Name: "busybox", Usage: "`PATH` of a static busybox to use as base, without a registry"},
		&cli.StringSliceFlag{Name: "archive",
			Usage: "write the image to `PATH`: a docker archive if it ends in .tar, or an OCI layout"},
		&cli.BoolFlag{Name: "push",
			Usage: "push the image to its registry, with the credentials of the docker configuration"},
		&cli.StringSliceFlag{Name: "load", Usage: "load the image into `containerd[=SOCKET]` or docker on this machine"},
		&cli.StringFlag{Name: "sign-key",
			Usage: "sign the image with the private `KEY`: a PEM file, or exec:COMMAND"},
		&cli.StringFlag{Name: "sign-name",
			Usage: "sign for the `REPOSITORY` only: the signature is not valid for the image under another name"},
		&cli.StringFlag{Name: "sbom", Usage: "write the bill of materials of the program, CycloneDX, to `FILE`"},
		command.OutputFlag("archive"),
	), more)
}

func withFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "with",
		Usage: "compile in the `PLUGIN` builtin:NAME[=OTHER], ./DIR, or MODULE@VERSION[:PACKAGE]"}
}

func platformFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "platform", Usage: "build for `OS/ARCH`, or several, separated by commas",
		DefaultText: "linux on this machine's architecture"}
}

func keepFlag() cli.Flag {
	return &cli.BoolFlag{Name: "keep", Usage: "keep the generated Go module and print its path"}
}

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
		Lock: c.Bool("lock"), Locked: c.Bool("locked"),
	}
}
