package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/build"
	"github.com/pmk-sched/pmk-sched/internal/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/image"
	"github.com/pmk-sched/pmk-sched/internal/manifest"
)

// projectURL is where the sources of this program can be read.
const projectURL = "https://github.com/pmk-sched/pmk-sched"

// buildOptions is what the flags of build, and the file, ask for.
type buildOptions struct {
	// Branch is a release, or "auto".
	Branch string
	// Nearest takes another patch where a module of Branch does not download.
	Nearest   bool
	Source    string
	Platforms []build.Platform
	Base      image.Base
	// Tag is the image's name; empty: a default that names the release.
	Tag string
	// Outputs are files and folders to write the image to.
	Outputs []string
	// Binary is a file to write the bare program to; with several platforms
	// each file has its platform in its name.
	Binary string
	Push   bool
	Loads  []loadTarget
	Keep   bool
	// Plugins are compiled in.
	Plugins chosen
	// Flags name those of the plugins that no file does.
	Flags []string
	// Extender builds the extender instead of a scheduler.
	Extender bool
}

// loadTarget is a container runtime of this machine to hand the image to.
type loadTarget struct{ Runtime, Socket string }

// buildData is what `build` prints.
type buildData struct {
	Reference string   `json:"reference"`
	Digest    string   `json:"digest,omitempty"`
	Platforms []string `json:"platforms"`
	Release   string   `json:"release"`
	// Asked is the release asked for where Release was taken instead.
	Asked  string `json:"asked,omitempty"`
	Go     string `json:"go"`
	Source string `json:"source"`
	// Plugins are those compiled in besides the release's own.
	Plugins  []plugins.Info `json:"plugins"`
	Inputs   string         `json:"inputs"`
	Cached   bool           `json:"cached"`
	Written  []string       `json:"written"`
	Binaries []binaryData   `json:"binaries"`
	Module   string         `json:"module,omitempty"`
}

type binaryData struct {
	Platform string `json:"platform"`
	SHA256   string `json:"sha256"`
	Size     int64  `json:"size"`
}

func buildCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "build",
		Usage: "compile the kube-scheduler of a release and pack it on busybox",
		Description: "The source is the release's Go module, the compiler the one that the release names. The same input gives the\n" +
			"same image. With a registry: --tag REPOSITORY:TAG --push. Without: --busybox PATH and --load or --output.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "branch", Usage: "`RELEASE` to build: v1.24.3, v1.24 or release-1.24 (its newest patch), or auto (that of the cluster)", DefaultText: "auto"},
			&cli.BoolFlag{Name: "nearest", Usage: "take the nearest patch of the same minor that can be built, where a module of the wanted one does not download"},
			&cli.StringFlag{Name: "source", Usage: "`git:URL|git:FOLDER` to compile instead of the release's modules"},
			&cli.StringSliceFlag{Name: "platform", Usage: "`OS/ARCH` to build for; repeat it, or separate several by commas", DefaultText: "linux on this machine's architecture"},
			&cli.StringFlag{Name: "base", Usage: "`IMAGE` to lay the scheduler on: a registry reference, a docker archive or an OCI layout", DefaultText: "busybox"},
			&cli.StringFlag{Name: "busybox", Usage: "`PATH` of a static busybox to lay the scheduler on: the way without a registry"},
			&cli.StringFlag{Name: "tag", Usage: "`REFERENCE` of the image", DefaultText: "localhost/kube-scheduler:RELEASE, with plugins RELEASE-plugins-HASH; localhost/pmk-extender:VERSION"},
			&cli.StringSliceFlag{Name: "output", Usage: "write the image to `PATH`: a docker archive if it ends in .tar, else an OCI layout; can be repeated"},
			&cli.StringFlag{Name: "binary", Usage: "write the bare kube-scheduler to `FILE`"},
			&cli.BoolFlag{Name: "push", Usage: "push the image to the registry that its reference names, with the credentials of the docker configuration"},
			&cli.StringSliceFlag{Name: "load", Usage: "hand the image to `containerd[=SOCKET]` or docker on this machine; can be repeated"},
			&cli.BoolFlag{Name: "extender", Usage: "build the extender, one for every release, instead of a scheduler; with plugins of your own that are portable"},
			&cli.BoolFlag{Name: "keep", Usage: "keep the generated Go module and say where it is"},
			fileFlag(), outputFlag(),
		}, pluginFlags()...),
		Action: func(c *cli.Context) error {
			o, err := readBuildOptions(c)
			if err != nil {
				return err
			}
			data, err := runBuild(c, u, o)
			if err != nil {
				return err
			}
			return u.data(c.String("o"), data, data.table)
		},
	}
}

func fileFlag() cli.Flag {
	return &cli.StringFlag{Name: "file", Aliases: []string{"f"}, Usage: "read what is not given by flags from `FILE` (kind CustomScheduler)"}
}

// readBuildOptions turns flags and file into options. It checks all that can be
// checked before minutes are spent on compiling.
func readBuildOptions(c *cli.Context) (buildOptions, error) {
	f, err := readCustomScheduler(c.String("file"))
	if err != nil {
		return buildOptions{}, err
	}
	o := buildOptions{
		Branch: cmp.Or(c.String("branch"), f.Spec.Source.Branch, branchAuto), Nearest: c.Bool("nearest"),
		Source: cmp.Or(c.String("source"), f.Spec.Source.From),
		Tag:    c.String("tag"),
		Binary: c.String("binary"), Outputs: c.StringSlice("output"), Push: c.Bool("push"), Keep: c.Bool("keep"),
		Flags: pluginFlagsToRepeat(c), Extender: c.Bool("extender"),
	}
	if err := refuseSchedulerFlags(c); err != nil {
		return o, err
	}
	if o.Plugins, err = readChosen(c, f); err != nil {
		return o, err
	}
	if o.Tag, err = o.defaultTag(f); err != nil {
		return o, err
	}
	if !strings.Contains(o.Tag, tagOfRelease) {
		if _, err := image.CanonicalName(o.Tag); err != nil {
			return o, err
		}
	}
	if o.Push && c.String("tag") == "" && (f.Spec.Image.Repository == "" || o.Extender) {
		return o, usagef("name it with --tag REPOSITORY:TAG", "--push needs to know where the image goes")
	}
	if o.Platforms, err = parsePlatforms(firstList(c.StringSlice("platform"), f.Spec.Image.Platforms)); err != nil {
		return o, err
	}
	if o.Loads, err = parseLoads(c.StringSlice("load")); err != nil {
		return o, err
	}
	o.Base, err = parseBase(cmp.Or(c.String("base"), f.baseUnless(c.String("busybox"))), c.String("busybox"))
	return o, err
}

// defaultTag is the tag that was asked for, else the file's, else one that names
// the release and its plugins.
func (o buildOptions) defaultTag(f *customScheduler) (string, error) {
	if o.Tag != "" {
		return o.Tag, nil
	}
	suffix, err := o.Plugins.tagSuffix()
	if err != nil {
		return "", err
	}
	if o.Extender {
		return defaultExtenderImage() + suffix, nil
	}
	if f.Spec.Image.Repository != "" {
		return f.imageReference(suffix), nil
	}
	return "localhost/kube-scheduler" + tagOfRelease + suffix, nil
}

func parseBase(base, busybox string) (image.Base, error) {
	switch {
	case base != "" && busybox != "":
		return image.Base{}, usagef("", "give one of --base and --busybox, not both")
	case busybox != "":
		if info, err := os.Stat(busybox); err != nil || info.IsDir() {
			return image.Base{}, usagef("Debian has one in its package busybox-static: /bin/busybox", "read --busybox %s: it is not a file", busybox)
		}
		return image.Base{Busybox: busybox}, nil
	default:
		return image.ParseBase(cmp.Or(base, "busybox"))
	}
}

func parsePlatforms(values []string) ([]build.Platform, error) {
	var list []build.Platform
	for _, value := range values {
		for _, text := range strings.Split(value, ",") {
			system, arch, ok := strings.Cut(strings.TrimSpace(text), "/")
			if !ok || system == "" || arch == "" || strings.Contains(arch, "/") {
				return nil, usagef("write it as linux/amd64", "unknown --platform %q", text)
			}
			list = append(list, build.Platform{OS: system, Arch: arch})
		}
	}
	if len(list) == 0 {
		list = []build.Platform{{OS: "linux", Arch: runtime.GOARCH}}
	}
	return list, nil
}

func parseLoads(values []string) ([]loadTarget, error) {
	var list []loadTarget
	for _, value := range values {
		target, socket, given := strings.Cut(value, "=")
		switch {
		case target == "containerd" && (!given || socket != ""):
		case target == "docker" && !given:
		default:
			return nil, usagef("use containerd, containerd=SOCKET or docker", "unknown --load %q", value)
		}
		list = append(list, loadTarget{Runtime: target, Socket: socket})
	}
	return list, nil
}

// runBuild compiles, packs and delivers.
func runBuild(c *cli.Context, u *ui, o buildOptions) (*buildData, error) {
	ctx := c.Context
	cache, err := cacheDir(c)
	if err != nil {
		return nil, err
	}
	result, err := o.compile(c, u, cache)
	if err != nil {
		return nil, err
	}
	u.warn(result.Info.Warnings...)
	o.Tag = strings.Replace(o.Tag, tagOfRelease, ":"+result.Info.Release, 1)
	data := newBuildData(o, result)
	if o.Binary != "" {
		if err := writeBinaries(result, o, data); err != nil {
			return nil, err
		}
	}
	if o.Binary != "" && len(o.Outputs) == 0 && len(o.Loads) == 0 && !o.Push {
		return data, nil // the image is somebody else's business
	}
	if err := pack(ctx, u, o, result, data); err != nil || o.Extender {
		return data, err
	}
	result.Flags = o.Flags
	return data, record(cache, result, o.Tag, data.Digest)
}

// record notes which build is in the image, under both names that it can be
// deployed by: deploy's check of the configuration then finds the binary.
func record(cache string, result *build.Result, tag, digest string) error {
	repository := tag
	if colon := strings.LastIndex(tag, ":"); colon > strings.LastIndex(tag, "/") {
		repository = tag[:colon]
	}
	for _, reference := range []string{tag, repository + "@" + digest} {
		known, err := image.CanonicalName(reference)
		if err != nil {
			return err
		}
		if err := build.Tag(cache, result, known); err != nil {
			return err
		}
	}
	return nil
}

// tagOfRelease stands for a tag that is named as the release is.
const tagOfRelease = ":" + manifest.ReleaseInImage

func newBuildData(o buildOptions, result *build.Result) *buildData {
	data := &buildData{
		Reference: o.Tag, Release: result.Info.Release, Asked: result.Info.Asked, Go: result.Info.Go, Source: result.Info.Source,
		Plugins: append([]plugins.Info{}, result.Info.Plugins...), Inputs: result.Info.Inputs, Cached: result.Cached,
		Written: []string{}, Module: result.Dir,
	}
	for _, p := range o.Platforms {
		data.Platforms = append(data.Platforms, p.String())
		if b, ok := result.Binary(o.program(), p); ok {
			data.Binaries = append(data.Binaries, binaryData{Platform: p.String(), SHA256: b.SHA256, Size: b.Size})
		}
	}
	return data
}

// table writes the data for people; the reference by digest stands on its own line.
func (d *buildData) table(w io.Writer) error {
	_, err := fmt.Fprintf(w, "image\t%s\n", d.Reference)
	rows := [][2]string{
		{"digest", d.Digest}, {"release", d.Release}, {"asked for", d.Asked}, {"platforms", strings.Join(d.Platforms, ", ")}, {"go", d.Go}, {"source", d.Source},
		{"plugins", strings.Join(pluginNames(d.Plugins), ", ")}, {"written", strings.Join(d.Written, ", ")}, {"module", d.Module},
	}
	for _, row := range rows {
		if row[1] != "" && err == nil {
			_, err = fmt.Fprintf(w, "%s\t%s\n", row[0], row[1])
		}
	}
	return err
}
