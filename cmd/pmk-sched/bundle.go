package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/artifact/bundle"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/kubeadm"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/artifact/programs"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/versions"
)

func bundleCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "bundle", Usage: "pack releases for machines without a network",
		Description: "A bundle has all that build, deploy, verify, lab and simulate need of a release: pmk-sched, Go, the " +
			"modules with the answers of the checksum database, the base image, the programs of Kubernetes, and an image.",
		Subcommands: []*cli.Command{bundleCreateCommand(u), bundleUnpackCommand(u), bundlePushCommand(u)},
	}
}

func bundleCreateCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "create", Usage: "build images and write them, with all that builds need, to a file",
		UsageText: command.Examples("pmk-sched bundle create --branch v1.24.3 --with builtin:timestamp --archive v1.24.3.tar.zst",
			"pmk-sched bundle create -f pmk-sched.yaml --sign-key key.pem --archive mine.tar.zst",
			"pmk-sched bundle create --branch v1.29.2 --since v1.24.3.tar.zst --archive v1.29.2.tar.zst"),
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "branch", Usage: "`RELEASE` of Kubernetes, such as v1.24.3",
				DefaultText: "spec.source.branch of the file"},
			fileFlag(),
			&cli.StringSliceFlag{Name: "with",
				Usage: "compile the `PLUGIN` builtin:NAME[=OTHER], ./DIR, or MODULE@VERSION[:PACKAGE] into the images"},
			&cli.StringSliceFlag{Name: "platform", Usage: "build for `OS/ARCH`, or several, separated by commas",
				DefaultText: "linux on this machine's architecture"},
			&cli.StringFlag{Name: "base", Usage: "base `IMAGE`: a registry reference, a docker archive or an OCI layout",
				DefaultText: image.DefaultBase},
			&cli.StringFlag{Name: "busybox", Usage: "`PATH` of a static busybox to use as base, without a registry"},
			&cli.StringFlag{Name: "sign-key",
				Usage: "sign the images with the private `KEY`: a PEM file, or exec:COMMAND"},
			&cli.StringFlag{Name: "archive",
				Usage: "`FILE` to write, compressed if it ends in .zst, .gz or .tgz (required)"},
			&cli.StringFlag{Name: "since", Usage: "leave out what the bundle in `FILE` has"},
			command.OutputFlag("archive"),
		},
		Action: func(c *cli.Context) error {
			o, err := readBundleOptions(c, u)
			if err != nil {
				return err
			}
			created, err := bundle.Create(c.Context, o, u.Session)
			if err != nil {
				return err
			}
			return u.Data(c.String("output"), created, createdTable(created))
		},
	}
}

func readBundleOptions(c *cli.Context, u *ui) (bundle.Options, error) {
	o := bundle.Options{
		Programs: programs.OfLabs(), EtcdOfKubeadm: etcdOfKubeadm, Version: ownVersion(),
		Archive: c.String("archive"), Since: c.String("since"),
	}
	if o.Archive == "" {
		return o, problem.Invalidf("", "--archive is required")
	}
	branches := c.StringSlice("branch")
	if len(branches) == 0 {
		branches = []string{""} // the file names it
	}
	if c.String("file") == "-" && len(branches) > 1 {
		return o, problem.Invalidf("use a file", "-f - and several releases exclude each other")
	}
	for _, branch := range branches {
		sp, err := spec.Read(spec.Flags{File: c.String("file"), Stdin: u.In, Branch: branch, Version: ownVersion()})
		if err != nil {
			return o, err
		}
		if sp.Branch == pack.BranchAuto {
			return o, problem.Invalidf("specify a release, for example --branch v1.24.3", "--branch is required")
		}
		request, err := sp.Build(spec.BuildFlags{
			Platforms: c.StringSlice("platform"), Base: c.String("base"), Busybox: c.String("busybox"),
			With: c.StringSlice("with"),
		})
		if err != nil {
			return o, err
		}
		request.SignKey = c.String("sign-key")
		o.Images = append(o.Images, request)
	}
	var err error
	if o.Self, err = os.Executable(); err != nil {
		return o, fmt.Errorf("find the executable of pmk-sched: %w", err)
	}
	return o, nil
}

// etcdOfKubeadm returns the etcd version, such as v3.5.3, that kubeadm labs run with a release. It
// is empty where kubeadm does not run.
func etcdOfKubeadm(ctx context.Context, program string, r versions.Release) (string, error) {
	if runtime.GOOS != "linux" {
		return "", nil
	}
	images, err := kubeadm.ListImages(ctx, program, r, os.Getenv("PATH"))
	if err != nil {
		return "", err
	}
	return images.EtcdVersion(), nil
}

func createdTable(created *bundle.Created) string {
	var p printer
	p.Pairs("bundle", created.Archive, "manifest", created.ID, "size", size(created.Size))
	p.Row("files", fmt.Sprintf("%d, %d of them in the earlier bundle", created.Files, created.Absent))
	p.bundled(&created.Manifest)
	return p.String()
}

// size returns a number of bytes for the user.
func size(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }

// bundled writes a bundle's contents, with digests.
func (p *printer) bundled(m *bundle.Manifest) {
	p.Pairs("releases", strings.Join(m.Releases, ", "), "go", strings.Join(m.Go, ", "), "base", m.Base)
	for _, i := range m.Images {
		p.Row("image", i.Reference+"@"+i.Digest)
	}
	for _, program := range m.Programs {
		p.Row("program", program.Name+" "+program.Version+" sha256:"+program.SHA256)
	}
}

func bundleUnpackCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "unpack", Usage: "add a bundle to the build cache, where the other commands find it",
		UsageText: command.Examples("pmk-sched bundle unpack v1.24.3.tar.zst",
			"pmk-sched bundle unpack --digest sha256:DIGEST v1.24.3.tar.zst",
			"pmk-sched bundle unpack --cache-dir /srv/pmk-sched v1.24.3.tar.zst"),
		ArgsUsage: "FILE",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "digest", Usage: "`DIGEST` of the manifest that create printed: unpack no other bundle"},
			command.OutputFlag(""),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return problem.Invalidf(command.SeeHelp(c), "expected one bundle, got %d arguments", c.NArg())
			}
			unpacked, err := bundle.Unpack(c.Context, c.Args().First(), c.String("digest"), u.Session)
			if err != nil {
				return err
			}
			var p printer
			p.Pairs("directory", unpacked.Directory, "manifest", unpacked.ID)
			p.bundled(&unpacked.Manifest)
			return u.Data(c.String("output"), unpacked, p.String())
		},
	}
}

func bundlePushCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "push", Usage: "copy the images of a bundle, with signatures and SBOMs, to a registry",
		Description: "The credentials are those of the docker configuration. An image keeps its digest, its tag and the path " +
			"of its repository.",
		UsageText: command.Examples("pmk-sched bundle push v1.24.3.tar.zst registry.example.com/mirror",
			"pmk-sched bundle push --registry-ca ca.pem ~/.cache/pmk-sched registry.example.com"),
		ArgsUsage: "FILE|DIR REGISTRY[/PATH]",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "registry-ca", Usage: "`FILE` with the CA of the registry in PEM"},
			command.OutputFlag(""),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() != 2 {
				return problem.Invalidf(command.SeeHelp(c), "expected a bundle and a registry, got %d arguments", c.NArg())
			}
			from, to := c.Args().Get(0), c.Args().Get(1)
			pushed, err := bundle.Push(c.Context, from, to, c.String("registry-ca"), u.Session)
			if err != nil {
				return err
			}
			var p printer
			for _, i := range pushed {
				p.Row("image", i.Reference+"@"+i.Digest)
				for _, digest := range i.Referrers {
					p.Row("referrer", digest)
				}
			}
			return u.Data(c.String("output"), pushed, p.String())
		},
	}
}
