package spec

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// BuildFlags are flags for build that are not in [Flags].
type BuildFlags struct {
	Source, Go    string
	Platforms     []string
	Base, Busybox string
	Tag           string
	Archives      []string
	Load          []string
	Push          bool
	Binary        string
	With, Imports []string
	Nearest, Keep bool
	// Vulnerabilities is the directory with a vulnerability database, VEX the file for the result.
	Vulnerabilities, VEX string
	Extender             bool
	// Lock writes the lock file, Locked compares the build with it.
	Lock, Locked bool
	// SignKey signs the image. SBOM and Provenance are files to write.
	SignKey, SBOM, Provenance string
	// SignName is the repository for which the image is signed.
	SignName string
	// Self is the pmk-sched executable to pack instead of a scheduler. If it is empty, a scheduler is
	// packed.
	Self string
}

// Build returns the request to build the image. It validates the spec and the flags before minutes
// are spent on compiling.
func (s *Spec) Build(f BuildFlags) (pack.Request, error) {
	d := s.request.Spec
	r := pack.Request{
		Branch: s.Branch, Nearest: f.Nearest, Source: f.Source, Tag: f.Tag,
		Destinations:    image.Destinations{Archives: f.Archives, Push: f.Push},
		Vulnerabilities: f.Vulnerabilities, VEX: f.VEX,
		Binary: f.Binary, Keep: f.Keep, Extender: f.Extender, Version: s.flags.Version, Self: f.Self,
		SignKey: f.SignKey, SignName: f.SignName, SBOM: f.SBOM, Provenance: f.Provenance,
	}
	if err := f.exclude(); err != nil {
		return r, err
	}
	if f.Source == "" {
		var err error
		if r.Source, err = s.file.from(d.Source.From); err != nil {
			return r, err
		}
	}
	d.Source.Go = cmp.Or(f.Go, d.Source.Go)
	if err := build.CheckGo(d.Source.Go); err != nil {
		return r, err
	}
	r.Go = d.Source.Go
	if err := s.lock(f, &r); err != nil {
		return r, err
	}
	if len(f.With) > 0 {
		var err error
		if d.Source.Plugins, err = s.file.plugins(f.With); err != nil {
			return r, err
		}
	}
	list, err := s.packPlugins(d.Source.Plugins)
	if err != nil {
		return r, err
	}
	r.Plugins = pack.Sources(list)
	if len(f.Imports) > 0 {
		d.Source.Imports = f.Imports
	}
	r.Imports = d.Source.Imports
	if r.Tag, err = s.tag(r); err != nil {
		return r, err
	}
	if f.Push && f.Tag == "" && (d.Image.Repository == "" || f.Extender) {
		return r, problem.Invalidf("add --tag REPOSITORY:TAG", "--push requires --tag")
	}
	if len(f.Platforms) > 0 {
		d.Image.Platforms = f.Platforms
	}
	if r.Platforms, err = parsePlatforms(d.Image.Platforms); err != nil {
		return r, err
	}
	if r.Load, err = parseRuntimes(f.Load); err != nil {
		return r, err
	}
	if r.Base, err = s.base(f, &d); err != nil {
		return r, err
	}
	r.Unconfirmed = s.unconfirmedImage(r.Tag, d)
	r.Recipe, err = recipe(d, r.Base)
	return r, err
}

// base returns the base image from the flags or the file, and sets it in d.
func (s *Spec) base(f BuildFlags, d *v1alpha1.CustomSchedulerSpec) (image.Base, error) {
	if f.Base == "" && f.Busybox == "" {
		return s.file.base(d.Image.Base, d.Image.Busybox)
	}
	d.Image.Base, d.Image.Busybox = f.Base, f.Busybox
	return parseBase(f.Base, f.Busybox)
}

// exclude refuses flags that exclude each other.
func (f BuildFlags) exclude() error {
	if f.VEX != "" && f.Vulnerabilities == "" {
		return problem.Invalidf("add --vulnerabilities DIR", "--vex requires --vulnerabilities")
	}
	return f.checkSigning()
}

// checkSigning refuses destinations that do not have an image's signatures.
func (f BuildFlags) checkSigning() error {
	if f.SignKey == "" {
		return nil
	}
	const hint = "use --push, or --archive with a path that does not end in .tar: an OCI layout"
	for _, path := range f.Archives {
		if strings.HasSuffix(path, ".tar") {
			return problem.Invalidf(hint, "--sign-key and --archive %s exclude each other: a docker archive has no signatures",
				path)
		}
	}
	if !f.Push && len(f.Archives) == 0 {
		return problem.Invalidf(hint, "--sign-key requires --push or --archive: signatures are stored with the image")
	}
	return nil
}

// ParsePlugins reads the values for --with.
func ParsePlugins(values []string) ([]plugins.Plugin, error) {
	var list []plugins.Plugin
	for _, value := range values {
		p, err := plugins.Parse(value)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// ParseBase reads --base and --busybox. Without both it returns no base.
func ParseBase(base, busybox string) (image.Base, error) {
	if base == "" && busybox == "" {
		return image.Base{}, nil
	}
	return parseBase(base, busybox)
}

// recipe returns the image's sources and base, valid in any directory.
func recipe(d v1alpha1.CustomSchedulerSpec, base image.Base) (v1alpha1.Recipe, error) {
	r := v1alpha1.Recipe{
		Go: d.Source.Go, Plugins: slices.Clone(d.Source.Plugins), Imports: d.Source.Imports, Platforms: d.Image.Platforms,
		Busybox: absolute(d.Image.Busybox), Base: d.Image.Base,
	}
	if base.Layout+base.Archive != "" {
		r.Base = absolute(r.Base)
	}
	return r, archive(r.Plugins)
}

// lockName is the name of the lock file for a build without a file.
const lockName = "pmk-sched.lock"

// lock sets a request's lock files.
func (s *Spec) lock(f BuildFlags, r *pack.Request) error {
	switch {
	case f.Lock && f.Locked:
		return problem.Invalidf("", "--lock and --locked exclude each other")
	case f.Lock:
		r.Lock = s.lockFile()
	case f.Locked:
		r.Locked = s.lockFile()
	}
	return nil
}

// lockFile is the lock file next to the document, with its name; without a document, in the working
// directory.
func (s *Spec) lockFile() string {
	if !s.file.regular {
		return lockName
	}
	return strings.TrimSuffix(s.flags.File, filepath.Ext(s.flags.File)) + filepath.Ext(lockName)
}

// tag is the image's requested name, else the document's, else one with the release and the
// plugins' hash.
func (s *Spec) tag(r pack.Request) (string, error) {
	tag := r.Tag
	if tag == "" {
		suffix, err := pack.TagSuffix(r.Plugins, r.Imports)
		if err != nil {
			return "", err
		}
		switch {
		case r.Self != "":
			tag = "localhost/pmk-sched:" + strings.ReplaceAll(s.flags.Version, "+", "-")
		case r.Extender:
			tag = s.extenderImage() + suffix
		case s.request.Spec.Image.Repository != "":
			tag = imageReference(s.request.Spec.Image, suffix)
		default:
			tag = "localhost/kube-scheduler:" + image.ReleaseInTag + suffix
		}
	}
	if !strings.Contains(tag, image.ReleaseInTag) {
		if _, err := image.CanonicalName(tag); err != nil {
			return "", err
		}
	}
	return tag, nil
}

func parseBase(base, busybox string) (image.Base, error) {
	switch {
	case base != "" && busybox != "":
		return image.Base{}, problem.Invalidf("", "--base and --busybox exclude each other")
	case busybox != "":
		if info, err := os.Stat(busybox); err != nil || info.IsDir() {
			return image.Base{}, problem.Invalidf("Debian has one in its package busybox-static: /bin/busybox",
				"read --busybox %s: not a file", busybox)
		}
		return image.Base{Busybox: busybox}, nil
	default:
		return image.ParseBase(cmp.Or(base, image.DefaultBase))
	}
}

func parsePlatforms(values []string) ([]build.Platform, error) {
	var list []build.Platform
	for _, value := range values {
		for _, text := range strings.Split(value, ",") {
			system, arch, ok := strings.Cut(strings.TrimSpace(text), "/")
			if !ok || system == "" || arch == "" || strings.Contains(arch, "/") {
				return nil, problem.Invalidf("", "invalid --platform %q: must be OS/ARCH, such as linux/amd64", text)
			}
			list = append(list, build.Platform{OS: system, Arch: arch})
		}
	}
	if len(list) == 0 {
		list = []build.Platform{{OS: "linux", Arch: runtime.GOARCH}}
	}
	return list, nil
}

func parseRuntimes(values []string) ([]image.Runtime, error) {
	var list []image.Runtime
	for _, value := range values {
		name, socket, given := strings.Cut(value, "=")
		switch {
		case name == "containerd" && (!given || socket != ""):
		case name == "docker" && !given:
		default:
			return nil, problem.Invalidf("", "invalid --load %q: must be containerd, containerd=SOCKET or docker", value)
		}
		list = append(list, image.Runtime{Name: name, Socket: socket})
	}
	return list, nil
}
