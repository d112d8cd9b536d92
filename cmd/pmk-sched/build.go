package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
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
		Flags:       buildFlags(u),
		Subcommands: []*cli.Command{buildExtenderCommand(u), buildSelfCommand(u)},
		Action: func(c *cli.Context) error {
			if c.IsSet("branches") || c.IsSet("index") {
				return buildReleases(c, u)
			}
			return runBuild(c, u, readBuildFlags(c))
		},
	}
}

func buildExtenderCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "extender", Usage: "build the extender, which serves every release, with portable plugins",
		UsageText: command.Examples("pmk-sched build extender --tag registry.example.com/pmk-extender:v1 --push",
			"pmk-sched build extender --with ./my-plugin --busybox /bin/busybox --load containerd"),
		Flags: imageFlags("localhost/pmk-extender:VERSION[-plugins-HASH]",
			fileFlag(), withFlag(), platformFlag(),
			&cli.StringFlag{Name: "binary", Usage: "write the program itself to `FILE`"}, keepFlag()),
		Action: func(c *cli.Context) error {
			flags := readBuildFlags(c)
			flags.Extender = true
			return runBuild(c, u, flags)
		},
	}
}

func buildSelfCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "self", Usage: "pack this pmk-sched into an image, for the pods of replace --all-nodes",
		UsageText: command.Examples("pmk-sched build self --tag registry.example.com/pmk-sched:v1 --push",
			"pmk-sched build self --busybox /bin/busybox --load containerd"),
		Flags: imageFlags("localhost/pmk-sched:VERSION"),
		Action: func(c *cli.Context) (err error) {
			flags := readBuildFlags(c)
			if flags.Self, err = os.Executable(); err != nil {
				return fmt.Errorf("find the executable of pmk-sched: %w", err)
			}
			return runBuild(c, u, flags)
		},
	}
}

func runBuild(c *cli.Context, u *ui, flags spec.BuildFlags) error {
	sp, err := readBuildSpec(c, u)
	if err != nil {
		return err
	}
	request, err := sp.Build(flags)
	if err != nil {
		return err
	}
	result, err := pack.Run(c.Context, request, u.Session)
	if err != nil {
		return err
	}
	next := ""
	if !flags.Extender && flags.Self == "" && (len(request.Load) > 0 || request.Push) {
		next = "`pmk-sched check --name my-scheduler --image " + result.Reference + "`"
		if file := c.String("file"); file != "" {
			next = "`pmk-sched deploy -f " + file + "`"
		}
	}
	return errors.Join(u.Conclude(c.String("output"), result, buildTable(result), "", next), result.Vulnerable())
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
