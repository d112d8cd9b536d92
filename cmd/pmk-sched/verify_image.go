package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
)

func verifyImageCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "verify-image", Usage: "verify the signature and the contents of an image", ArgsUsage: "IMAGE|ARCHIVE",
		Description: "Reads an image of a registry, or an OCI layout, and checks its digests, the signature of the key, the " +
			"signed bill of materials against the modules in the program, and the signed provenance against the program. " +
			"With --rebuild it builds the image again from the provenance and compares the bytes. Nothing of the image is " +
			"run. The exit status is 3 if a check fails.",
		UsageText: command.Examples(
			"pmk-sched verify-image --key pub.pem registry.example.com/kube-scheduler:v1.24.3",
			"pmk-sched verify-image --key pub.pem --rebuild --with ./myplugin layout",
			"pmk-sched verify-image --key pub.pem -o json registry.example.com/kube-scheduler:v1.24.3"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "key", Usage: "`FILE` of the public key, PEM"},
			&cli.BoolFlag{Name: "rebuild", Usage: "build the image again and compare the bytes"},
			&cli.StringSliceFlag{Name: "with",
				Usage: "build again with the `PLUGIN` of `pmk-sched build --with`, for plugins from a directory"},
			&cli.StringFlag{Name: "base", Usage: "build again on the `IMAGE`, if the base was not in a registry"},
			&cli.StringFlag{Name: "busybox", Usage: "build again on a static busybox at `PATH`"},
			command.OutputFlag(""),
		},
		Action: func(c *cli.Context) error {
			request, err := readImageRequest(c)
			if err != nil {
				return err
			}
			report, err := pack.VerifyImage(c.Context, u.Session, request)
			if err != nil {
				return err
			}
			if err := u.Data(c.String("output"), report, imageTable(report)); err != nil {
				return err
			}
			if failed := report.Failed(); failed > 0 {
				return command.CheckFailed("%d of %d checks of %s failed", failed, len(report.Checks), report.Image)
			}
			return nil
		},
	}
}

func readImageRequest(c *cli.Context) (r pack.ImageRequest, err error) {
	r = pack.ImageRequest{
		Image: c.Args().First(), Key: c.String("key"), Rebuild: c.Bool("rebuild"), Version: ownVersion(),
	}
	switch {
	case r.Image == "":
		return r, problem.Invalidf(command.SeeHelp(c), "IMAGE|ARCHIVE is required")
	case r.Key == "":
		return r, problem.Invalidf("it is the public key of `pmk-sched build --sign-key`", "--key is required")
	}
	for _, flag := range []string{"with", "base", "busybox"} {
		if c.IsSet(flag) && !r.Rebuild {
			return r, problem.Invalidf("add --rebuild", "--%s requires --rebuild", flag)
		}
	}
	if r.Plugins, err = spec.ParsePlugins(c.StringSlice("with")); err != nil {
		return r, err
	}
	r.Base, err = spec.ParseBase(c.String("base"), c.String("busybox"))
	return r, err
}

func imageTable(r *pack.ImageReport) string {
	var p printer
	p.Pairs("image", r.Image, "digest", r.Digest, "key", r.Key)
	p.Head(len(r.Checks), "CHECK", "PLATFORM", "OUTCOME", "DETAILS")
	for _, c := range r.Checks {
		p.Row(c.Name, orDash(c.Platform), c.Outcome, strings.Join(c.Details, "; "))
	}
	return p.String()
}
