package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
)

func buildCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "build", Usage: "compile the kube-scheduler of a release and pack it into an image on busybox",
		Description: "The source is the Go module of the release, the compiler the version that the release names. The " +
			"same input gives the same image. With a registry: --tag REPOSITORY:TAG --push. Without a registry: --busybox " +
			"PATH with --load or --archive.",
		UsageText: command.Examples("pmk-sched build --branch v1.24.3 --tag registry.example.com/kube-scheduler:v1.24.3 --push",
			"pmk-sched build --branch v1.24.3 --busybox /bin/busybox --with builtin:timestamp --load containerd",
			"pmk-sched build --branches v1.29,v1.34 -f pmk-sched.yaml --push --index releases.yaml"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "branch", Usage: "`RELEASE` to build: v1.24.3, or v1.24 or release-1.24 for its newest patch",
				DefaultText: "the cluster's"},
			&cli.StringFlag{Name: "branches",
				Usage: "build several `RELEASES`, separated by commas, and write --index; name the image with {release}"},
			&cli.StringFlag{Name: "index", Usage: "write the release index of --branches to `FILE`"},
			fileFlag(),
			&cli.StringSliceFlag{Name: "with",
				Usage: "compile in the `PLUGIN` builtin:NAME[=OTHER], ./DIR, or MODULE@VERSION[:PACKAGE]"},
			&cli.StringSliceFlag{Name: "import", Usage: "import the `PACKAGE` for what it registers, such as a scheme"},
			&cli.BoolFlag{Name: "nearest",
				Usage: "build the nearest patch of the minor if a module of the release does not download"},
			unknownReleaseFlag(u),
			&cli.StringFlag{Name: "source", Usage: "compile `git:URL|git:DIR` instead of the release's modules"},
			&cli.StringFlag{Name: "go", Usage: "compile with Go `VERSION`: 1.26.8, 1.26 for its newest patch, or newest",
				DefaultText: "the version that the release names"},
			&cli.StringSliceFlag{Name: "platform", Usage: "build for `OS/ARCH`, or several, separated by commas",
				DefaultText: "linux on this machine's architecture"},
			&cli.StringFlag{Name: "base",
				Usage: "base `IMAGE`: a registry reference, by digest if it must not change, a docker archive or an OCI " +
					"layout",
				DefaultText: "busybox"},
			&cli.StringFlag{Name: "busybox", Usage: "`PATH` of a static busybox to use as base, without a registry"},
			&cli.StringFlag{Name: "tag", Usage: "`REFERENCE` of the image",
				DefaultText: "localhost/kube-scheduler:RELEASE[-plugins-HASH]"},
			&cli.StringSliceFlag{Name: "archive",
				Usage: "write the image to `PATH`: a docker archive if it ends in .tar, or an OCI layout"},
			&cli.BoolFlag{Name: "push",
				Usage: "push the image to its registry, with the credentials of the docker configuration"},
			&cli.StringSliceFlag{Name: "load", Usage: "load the image into `containerd[=SOCKET]` or docker on this machine"},
			&cli.StringFlag{Name: "binary", Usage: "write the program itself to `FILE`"},
			&cli.BoolFlag{Name: "extender", Usage: "build the extender, which serves every release, with portable plugins only"},
			&cli.BoolFlag{Name: "lock",
				Usage: "write pmk-sched.lock next to the file of -f: modules with sums, Go, base and plugins of the image"},
			&cli.BoolFlag{Name: "locked", Usage: "fail if the build differs from pmk-sched.lock"},
			&cli.StringFlag{Name: "sign-key",
				Usage: "sign the image with the private `KEY`: a PEM file, or exec:COMMAND"},
			&cli.StringFlag{Name: "sign-name",
				Usage: "sign for the `REPOSITORY` only: the signature is not valid for the image under another name"},
			&cli.StringFlag{Name: "sbom", Usage: "write the bill of materials of the program, CycloneDX, to `FILE`"},
			&cli.StringFlag{Name: "provenance", Usage: "write the SLSA provenance of the image to `FILE`"},
			&cli.StringFlag{Name: "vulnerabilities",
				Usage: "check with a copy of the Go vulnerability database in `DIR`; exit status 3 if one is called"},
			&cli.StringFlag{Name: "vex", Usage: "write vulnerabilities that are not called to `FILE` as CycloneDX VEX"},
			&cli.BoolFlag{Name: "self", Usage: "pack this pmk-sched itself, for the pods of replace --all-nodes"},
			&cli.BoolFlag{Name: "keep", Usage: "keep the generated Go module and print its path"},
			command.OutputFlag("archive"),
		},
		Action: func(c *cli.Context) error {
			if c.IsSet("branches") || c.IsSet("index") {
				return buildReleases(c, u)
			}
			sp, err := readBuildSpec(c, u)
			if err != nil {
				return err
			}
			flags := readBuildFlags(c)
			if c.Bool("self") {
				if flags.Self, err = os.Executable(); err != nil {
					return fmt.Errorf("find the executable of pmk-sched: %w", err)
				}
			}
			request, err := sp.Build(flags)
			if err != nil {
				return err
			}
			result, err := pack.Run(c.Context, request, u.Session)
			if err != nil {
				return err
			}
			return errors.Join(u.Data(c.String("output"), result, buildTable(result)), result.Vulnerable())
		},
	}
}

func buildTable(r *pack.Result) string {
	var p printer
	p.Row("image", r.Reference)
	p.Facts("digest", r.Digest, "base", r.Base, "release", r.Release, "asked for", r.Asked, "rules", r.Rules,
		"platforms", strings.Join(r.Platforms, ", "), "go", r.Go, "the release names go", r.GoNamed, "source", r.Source,
		"plugins", strings.Join(pack.PluginNames(r.Plugins), ", "),
		"written", strings.Join(r.Written, ", "), "module", r.Module)
	for _, v := range r.Called() {
		p.Row()
		p.Facts("calls", v.ID+" "+v.Summary, "in", v.Module+" "+v.Version, "fixed in", v.Fixed,
			"path", strings.Join(v.Path, " → "))
	}
	return p.String()
}
