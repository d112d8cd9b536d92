package bundle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/artifact/programs"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/versions"
)

// downloads is a bundle's GOPROXY directory.
const downloads = build.ModuleDownloads

// minAbsent is the minimum size in bytes for leaving a file out of a later bundle. Unpacking
// rewrites smaller files: the checksum database's answers.
const minAbsent = 64 << 10

// kubeadm is the program's name.
const kubeadm = "kubeadm"

// Options are the inputs of Create.
type Options struct {
	// Images are the images to build, at least one. The release of each is in the bundle.
	Images []pack.Request
	// Programs are the program names for labs and simulations; see internal/artifact/programs.
	Programs []string
	// EtcdOfKubeadm returns the etcd version that kubeadm labs run with a release, or "" if kubeadm
	// does not run here. kubeadm is the program's path. The function may be nil.
	EtcdOfKubeadm func(ctx context.Context, kubeadm string, r versions.Release) (string, error)
	// Self is the executable of pmk-sched, and Version its version.
	Self, Version string
	// Archive is the file to write. It is compressed if its name ends in .zst, .gz or .tgz.
	Archive string
	// Since is an archive. Contents that it has are left out.
	Since string
}

// Created is the result of Create.
type Created struct {
	Archive string `json:"archive"`
	// ID is the manifest's digest.
	ID string `json:"id"`
	// Size is the archive's size in bytes. Files is the number of files, and Absent the number of
	// those that are in the earlier bundle.
	Size   int64 `json:"size"`
	Files  int   `json:"files"`
	Absent int   `json:"absent"`
	Manifest
}

// creation is a Create run: it fills a build cache directory with only the bundle's parts.
type creation struct {
	Options
	user, staged *session.Session
	manifest     Manifest
}

// Create writes a bundle.
func Create(ctx context.Context, o Options, s *session.Session) (_ *Created, err error) {
	if len(o.Images) == 0 || o.Archive == "" {
		return nil, problem.Invalidf("", "a release and --archive FILE are required")
	}
	earlier, err := readEarlier(ctx, o.Since)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.CacheDir, 0o755); err != nil {
		return nil, fmt.Errorf("create a bundle: %w", err)
	}
	stage, remove, err := safeio.MakeTempIn(s.CacheDir, "bundle-")
	if err != nil {
		return nil, fmt.Errorf("create a bundle: %w", err)
	}
	defer func() { err = errors.Join(err, remove()) }()
	env, err := build.Stage(ctx, pack.Environment(s), stage)
	if err != nil {
		return nil, err
	}
	staged := *s
	staged.CacheDir, staged.Environ = stage, env.Env
	c := &creation{Options: o, user: s, staged: &staged}
	if err := c.collect(ctx); err != nil {
		return nil, err
	}
	return c.write(ctx, earlier)
}

// readEarlier reads an earlier bundle's manifest. Without one it returns nil.
func readEarlier(ctx context.Context, file string) (*archive, error) {
	if file == "" {
		return nil, nil
	}
	a, err := open(ctx, file)
	if err != nil {
		return nil, problem.Invalidf("--since is a file that `pmk-sched bundle create` wrote", "%w", err)
	}
	return a, a.close()
}

// collect fills the stage.
func (c *creation) collect(ctx context.Context) error {
	c.manifest = Manifest{Format: format, PMKSched: c.Version, Images: []Image{}, Programs: []programs.Program{}}
	for _, r := range c.Images {
		if err := c.addRelease(ctx, r); err != nil {
			return err
		}
	}
	if err := c.fetchExtender(ctx); err != nil {
		return err
	}
	if version, err := build.FetchGo(ctx, pack.Environment(c.staged)); err != nil {
		c.user.Warn(fmt.Sprintf("a machine that unpacks the bundle needs Go %s: %v", version, err))
	}
	if err := build.CompleteSums(ctx, pack.Environment(c.staged)); err != nil {
		return err
	}
	self := filepath.Join(c.staged.CacheDir, filepath.FromSlash(SelfPath))
	if err := os.MkdirAll(filepath.Dir(self), 0o755); err != nil {
		return fmt.Errorf("add pmk-sched: %w", err)
	}
	return build.CopyFile(c.Self, self, 0o755)
}

// addRelease builds a release's image and adds the modules and programs for the release.
func (c *creation) addRelease(ctx context.Context, r pack.Request) error {
	release, err := pack.ResolveBranch(ctx, c.staged, r.Branch)
	if err != nil {
		return err
	}
	r.Branch = release.String()
	if err := c.addImage(ctx, r); err != nil {
		return err
	}
	if err := c.fetchBundledPlugins(ctx, release, r.Platforms); err != nil {
		return err
	}
	found, err := c.findPrograms(ctx, release)
	if err != nil {
		return err
	}
	if err := programs.Copy(c.staged.CacheDir, release, found); err != nil {
		return err
	}
	for _, name := range c.Programs {
		c.manifest.Programs = append(c.manifest.Programs, found[name])
	}
	c.manifest.Releases = append(c.manifest.Releases, r.Branch)
	return nil
}

// findPrograms returns a release's programs, with the etcd that its kubeadm names: all labs and
// simulations of the release work with it.
func (c *creation) findPrograms(ctx context.Context, release versions.Release) (map[string]programs.Program, error) {
	finder := pack.Finder(c.user)
	r := programs.Request{Release: release, Names: c.Programs}
	if c.EtcdOfKubeadm != nil {
		found, err := finder.Find(ctx, programs.Request{Release: release, Names: []string{kubeadm}})
		if err != nil {
			return nil, err
		}
		if r.EtcdVersion, err = c.EtcdOfKubeadm(ctx, found[kubeadm].Path, release); err != nil {
			return nil, err
		}
	}
	return finder.Find(ctx, r)
}

func (c *creation) addImage(ctx context.Context, r pack.Request) (err error) {
	var platforms []string
	for _, p := range r.Platforms {
		platforms = append(platforms, p.String())
	}
	err = c.user.Step("save base "+r.Base.String(), func() error {
		bases := filepath.Join(c.staged.CacheDir, filepath.FromSlash(pack.Bases))
		c.manifest.Base, err = image.SaveBase(ctx, r.Base, platforms, authn.DefaultKeychain, bases)
		return err
	})
	if err != nil {
		return err
	}
	r.Tag = strings.ReplaceAll(r.Tag, image.ReleaseInTag, r.Branch)
	name, err := image.FileName(r.Tag)
	if err != nil {
		return err
	}
	directory := path.Join(imageDir, name)
	to := filepath.Join(c.staged.CacheDir, filepath.FromSlash(directory))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("add image %s: %w", r.Tag, err)
	}
	r.Destinations = image.Destinations{Archives: []string{to}}
	result, err := pack.Run(ctx, r, c.staged)
	if err != nil {
		return err
	}
	c.manifest.Images = append(c.manifest.Images, Image{
		Reference: result.Reference, Digest: result.Digest, Platforms: result.Platforms,
		Plugins: append([]string{}, pack.PluginNames(result.Plugins)...), Directory: directory,
	})
	return nil
}

// fetchBundledPlugins downloads the modules for schedulers with any bundled plugins.
func (c *creation) fetchBundledPlugins(
	ctx context.Context, release versions.Release, platforms []build.Platform,
) error {
	names, err := plugins.Builtins(pmksched.Sources)
	if err != nil {
		return err
	}
	o := build.Options{
		Environment: pack.Environment(c.staged), Release: release, Platforms: platforms, Sources: pmksched.Sources,
	}
	for _, name := range names {
		o.Plugins = append(o.Plugins, plugins.Plugin{Builtin: name})
	}
	return build.FetchModules(ctx, o)
}

// fetchExtender downloads the modules of an extender with the bundled plugins.
func (c *creation) fetchExtender(ctx context.Context) error {
	return build.FetchExtender(ctx, build.ExtenderOptions{
		Environment: pack.Environment(c.staged), Version: c.Version, Platforms: c.Images[0].Platforms,
		Sources: pmksched.Sources, GoMod: pmksched.GoMod, GoSum: pmksched.GoSum,
	})
}

// write writes the stage's archive.
func (c *creation) write(ctx context.Context, earlier *archive) (*Created, error) {
	m := &c.manifest
	slices.Sort(m.Releases)
	m.Releases = slices.Compact(m.Releases)
	err := c.user.Step("read the files of the bundle", func() error { return m.list(ctx, c.staged.CacheDir, earlier) })
	if err != nil {
		return nil, fmt.Errorf("list the files of the bundle: %w", err)
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	text, err := m.encode()
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", manifestFile, err)
	}
	created := &Created{Archive: c.Archive, ID: digest(text), Files: len(m.Files), Manifest: *m}
	err = c.user.Step("write "+c.Archive, func() error {
		return safeio.WriteFile(ctx, c.Archive, 0o644, func(f *os.File) error {
			if err := m.write(ctx, f, text, c.Archive, c.staged.CacheDir); err != nil {
				return fmt.Errorf("write %s: %w", c.Archive, err)
			}
			info, err := f.Stat()
			if err == nil {
				created.Size = info.Size()
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	for _, f := range m.Files {
		if f.Absent {
			created.Absent++
		}
	}
	return created, nil
}
