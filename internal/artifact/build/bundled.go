package build

import (
	"context"
	"errors"
	"fmt"
	goversion "go/version"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/module"
)

// The parts of a bundle that builds use, below the build cache directory.
//
// The module cache is a GOMODCACHE, and its directory cache/download is a GOPROXY directory. Builds
// use it as their module cache: Go compares each module in it with the checksum database, whose
// answers are in it too. The directory of Go has one directory for each version.
const (
	bundledModules = "bundle/mod"
	bundledGo      = "bundle/go"
)

// ModuleDownloads is the GOPROXY directory of bundles, below the build cache directory.
const ModuleDownloads = bundledModules + "/cache/download"

// bundled returns the path of a bundle part.
func (c cache) bundled(part string) string {
	return filepath.Join(filepath.Dir(c.dir), filepath.FromSlash(part))
}

// goProgram returns the go command to run: the newest one of a bundle, which knows how to read the
// bundle's modules, or else the one on PATH.
func (c cache) goProgram(env []string) (string, error) {
	program := func(version string) string { return filepath.Join(GoPath(filepath.Dir(c.dir), version), "bin", "go") }
	var versions []string
	entries, _ := os.ReadDir(c.bundled(bundledGo))
	for _, e := range entries {
		version, isGo := strings.CutPrefix(e.Name(), "go")
		if _, err := os.Stat(program(version)); err == nil && isGo {
			versions = append(versions, version)
		}
	}
	if newest := LatestGo(versions); newest != "" {
		return program(newest), nil
	}
	return lookPath(env, "go")
}

// useBundle changes the user's settings for modules if there is a bundle: its modules come first.
// GOPATH, in which Go keeps the newest tree of the checksum database that it has seen, is new for
// each build: the answers in the bundle prove nothing about a newer tree.
func (c cache) useBundle(settings map[string]string, temporary string) {
	modules := c.bundled(bundledModules)
	if info, err := os.Stat(modules); err != nil || !info.IsDir() {
		return
	}
	settings["GOMODCACHE"] = modules
	settings["GOPROXY"] = "file://" + filepath.ToSlash(c.bundled(ModuleDownloads)) + "," + settings["GOPROXY"]
	settings["GOPATH"] = filepath.Join(temporary, "gopath")
	settings["GOFLAGS"] += " -modcacherw"
}

// Stage returns the environment for builds that collect a bundle's modules: in cacheDir, which is
// empty, and from the user's module cache if they are there.
func Stage(ctx context.Context, e Environment, cacheDir string) (_ Environment, err error) {
	j, err := newJob(e)
	if err != nil {
		return e, err
	}
	defer j.close(&err)
	golang, err := j.goTool.find(ctx)
	if err != nil {
		return e, err
	}
	downloads := filepath.Join(cacheDir, filepath.FromSlash(ModuleDownloads))
	if err := os.MkdirAll(downloads, 0o755); err != nil {
		return e, storage(ctx, "create the module cache of a bundle", err)
	}
	known := "file://" + filepath.ToSlash(filepath.Join(lookup(golang.base, "GOMODCACHE"), "cache", "download"))
	staged := e
	staged.CacheDir = cacheDir
	staged.Env = append(slices.Clone(golang.base), "GOPROXY="+known+","+lookup(golang.base, "GOPROXY"),
		"PATH="+filepath.Dir(golang.path)+string(filepath.ListSeparator)+lookup(e.Env, "PATH"))
	return staged, nil
}

// FetchModules downloads all modules that a build needs, and compiles nothing.
func FetchModules(ctx context.Context, o Options) (err error) {
	k, err := newReleaseBuild(o)
	if err != nil {
		return err
	}
	defer k.close(&err)
	s, named, set, err := k.readSources(ctx)
	if err != nil {
		return err
	}
	got, used, err := k.download(ctx, s, named)
	if err != nil {
		return err
	}
	r, err := k.moduleRecipe(s, got, used, set)
	if err != nil {
		return err
	}
	_, err = k.compiler.prepare(ctx, r)
	return err
}

// FetchGo downloads the Go version that runs builds on this machine, as a module, so that a machine
// without Go can run builds.
func FetchGo(ctx context.Context, e Environment) (version string, err error) {
	j, err := newJob(e)
	if err != nil {
		return "", err
	}
	defer j.close(&err)
	golang, err := j.goTool.find(ctx)
	if err != nil {
		return "", err
	}
	step := "download Go " + golang.version
	return golang.version, j.goTool.step(step, func() error {
		answers, err := j.goTool.download(ctx, step, toolchainModule+"@"+toolchainVersion(golang.version, Host()))
		if err == nil && answers[0].Error != "" {
			err = fmt.Errorf("download Go %s: %s", golang.version, redact(answers[0].Error))
		}
		return err
	})
}

// GoArchive returns the Go version in a file in [ModuleDownloads], if it is one for this machine.
// file is a slash-separated path in that directory.
func GoArchive(file string) (m module.Version, version string, ok bool) {
	name, found := strings.CutPrefix(file, toolchainModule+"/@v/")
	name, isZip := strings.CutSuffix(name, ".zip")
	version, ok = goOfToolchain(name)
	return module.Version{Path: toolchainModule, Version: name}, version,
		ok && found && isZip && goVersion.MatchString(version)
}

// GoPath returns the directory for a Go version in a build cache directory.
func GoPath(cacheDir, version string) string {
	return filepath.Join(cacheDir, filepath.FromSlash(bundledGo), "go"+version)
}

// CompleteSums completes the checksum database's answers in a bundle's module cache: all of them
// are about the newest database tree that they name, and the tree parts that prove them are
// present. Then Go verifies the modules without a network, in any order.
func CompleteSums(ctx context.Context, e Environment) (err error) {
	databases, err := sumDatabases(e.CacheDir)
	if err != nil || len(databases) == 0 {
		return err
	}
	var modules []string
	for _, d := range databases {
		answers, err := d.answers()
		if err != nil {
			return err
		}
		for _, a := range answers {
			collected, err := isCollected(e.CacheDir, a.module)
			if err == nil && !collected {
				err = os.Remove(a.file) // Go asked about a version that it did not download
			}
			if err != nil {
				return err
			}
			if collected {
				modules = append(modules, a.module.Path+"@"+a.module.Version)
			}
		}
	}
	if err := UnifySums(e.CacheDir); err != nil || len(modules) == 0 {
		return err
	}
	j, err := newJob(e)
	if err != nil {
		return err
	}
	defer j.close(&err)
	const step = "complete the answers of the checksum database"
	return j.goTool.step(step, func() error {
		// The modules are in the cache, so Go verifies them and downloads only parts of the tree.
		verified, err := j.goTool.download(ctx, step, modules...)
		if err != nil {
			return err
		}
		for _, m := range verified {
			if m.Error != "" {
				return fmt.Errorf("verify %s: %s", m, redact(m.Error))
			}
		}
		return nil
	})
}

// isCollected reports whether a module's source is in a bundle's module cache.
func isCollected(cacheDir string, m module.Version) (bool, error) {
	path, err := module.EscapePath(m.Path)
	if err != nil {
		return false, err
	}
	version, err := module.EscapeVersion(m.Version)
	if err != nil {
		return false, err
	}
	file := filepath.Join(cacheDir, filepath.FromSlash(ModuleDownloads), filepath.FromSlash(path), "@v", version+".zip")
	_, err = os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// LatestGo returns the newest given Go version, or "".
func LatestGo(versions []string) string {
	newest := ""
	for _, v := range versions {
		if newest == "" || goversion.Compare("go"+v, "go"+newest) > 0 {
			newest = v
		}
	}
	return newest
}
