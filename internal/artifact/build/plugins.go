package build

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/module"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/versions"
)

// ReadPlugins describes the plugins of a build from their sources, in their order, and refuses
// plugins that the build would refuse before it compiles. Only plugins of modules need Go and,
// unless they were downloaded before, the network.
func ReadPlugins(ctx context.Context, o Options) (_ []plugins.Info, err error) {
	j, err := newJob(o.Environment)
	if err != nil {
		return nil, err
	}
	defer j.close(&err)
	set, err := readPlugins(ctx, j.goTool, plugins.Options{
		Plugins: o.Plugins, Release: o.Release, Rules: o.Release.Rules(), Sources: o.Sources,
		Platform: pluginPlatform(nil, o.Release.Rules(), o.Release.Rules().Go),
	})
	if err != nil {
		return nil, err
	}
	return set.InfosOf(o.Plugins), nil
}

// readPlugins reads plugins and downloads their modules.
func readPlugins(ctx context.Context, tool *goTool, o plugins.Options) (*plugins.Set, error) {
	o.Download = tool.downloadPlugin
	return plugins.Read(ctx, o)
}

func readPluginSet(
	ctx context.Context, tool *goTool, o Options, release versions.Release, rules versions.Rules, goVersion string,
) (*plugins.Set, error) {
	if len(o.Plugins)+len(o.Imports) == 0 {
		return &plugins.Set{}, nil
	}
	return readPlugins(ctx, tool, plugins.Options{
		Plugins: o.Plugins, Imports: o.Imports, Release: release, Rules: rules, Sources: o.Sources,
		Platform: pluginPlatform(o.Platforms, rules, goVersion),
	})
}

// pluginPlatform selects the plugin files for the first of platforms.
func pluginPlatform(platforms []Platform, rules versions.Rules, goVersion string) plugins.Platform {
	p := orHost(platforms)[0]
	return plugins.Platform{OS: p.OS, Arch: p.Arch, Tags: strings.Split(buildTags(rules), ","), Go: goVersion}
}

// downloadPlugin returns the directory of a plugin's module, which the user's own go command
// downloads unless it did so before.
func (t *goTool) downloadPlugin(ctx context.Context, path, version string) (string, error) {
	name := path + "@" + version
	var record struct{ Dir string }
	file := t.cache.fact("plugins", name)
	if found, err := readJSON(file, &record); err == nil && found && isDir(record.Dir) {
		return record.Dir, nil
	}
	step := "download " + name
	err := t.step(step, func() error {
		answers, err := t.download(ctx, step, name)
		if err != nil {
			return err
		}
		if failed := answers[0].Error; failed != "" {
			return unknownPlugin(name, diagnose(step, redact(failed), errors.New("go mod download failed")))
		}
		record.Dir = answers[0].Dir
		return writeJSON(file, record)
	})
	return record.Dir, err
}

func unknownPlugin(name string, failed *Error) error {
	if failed.Cause != CauseModuleMissing {
		return failed
	}
	return problem.Invalidf(
		"check the spelling of the module and its version; GOPROXY and GOPRIVATE configure where private modules are",
		"the module proxy does not serve %s:\n  | %s", name, failed.Output)
}

// pluginTarget describes a module with which plugins are compiled. pinned are the directives that
// its generated module has without plugins.
func pluginTarget(s source, pinned []pin, staging string, goVersion string) plugins.Target {
	t := plugins.Target{
		GoDirective: s.GoDirective, Go: goVersion, Versions: map[string]string{},
		Staging: slices.Concat(s.Staging, s.Unused),
	}
	for _, r := range s.Required {
		t.Required = append(t.Required, module.Version{Path: r.Path, Version: r.Version})
		t.Versions[r.Path] = r.Version
	}
	for _, p := range s.Pins {
		if p.Version == "" {
			t.Versions[p.Path] = p.NewVersion
		}
	}
	for _, path := range t.Staging {
		t.Versions[path] = staging
	}
	t.Versions[kubernetes] = s.Version
	for _, p := range pinned {
		if p.Version == "" {
			t.Replaced = append(t.Replaced, p.Path)
		}
	}
	return t
}

// explainPlugins completes the error of a build with plugins: with the file names that the user
// knows, and with the modules that the plugins require and the release does not have.
func (r *recipe) explainPlugins(err error) error {
	var known *Error
	if r.plugins.Empty() || !errors.As(err, &known) {
		return err
	}
	var inPlugins bool
	known.Output, inPlugins = r.plugins.Original(known.Output)
	if known.Cause == CauseCompile && inPlugins {
		known.Message = "a plugin does not compile against " + r.against
		for _, warning := range r.plugins.Warnings(r.target) {
			known.Try += "; " + warning
		}
	}
	if tooOld := needsNewerGo.FindStringSubmatch(known.Output); tooOld != nil {
		known.Cause = CauseCompile
		known.Message = fmt.Sprintf("%s, which a plugin requires, is for Go %s and %s is compiled with an older one",
			tooOld[1], tooOld[2], r.against)
		known.Try = "require an older version of it in the plugin's go.mod"
	}
	return err
}

// foreignKind matches a scheduler's panic about a portable plugin whose arguments it would read as
// the arguments of a native plugin with the same name (refuseForeignKind in
// scheduler/adapter/kinds.go).
var foreignKind = regexp.MustCompile(`(?m)^panic: (plugin (\S+): package (\S+) registers the kind .*)$`)

// sameArguments returns the error from a scheduler that does not start because two plugins have the
// same arguments kind, or nil if its output does not report that. Only the compiled scheduler knows
// what its packages register.
func sameArguments(step, output string) error {
	found := foreignKind.FindStringSubmatch(output)
	if found == nil {
		return nil
	}
	return &Error{
		Step: step, Cause: CauseArguments, Message: found[1],
		Try: fmt.Sprintf("register a bundled plugin by another name, such as builtin:%s=My%s (name in pmk-sched.yaml), give a "+
			"plugin of your own another constant Name, or leave out the plugins and the `--import` that compile in %s",
			strings.ToLower(found[2]), found[2], found[3]),
	}
}

// needsNewerGo matches how go 1.21 and later report that a module is too new for them.
var needsNewerGo = regexp.MustCompile(`([^\s]+@[^\s:]+):? (?:requires|module requires) go >= ([0-9.]+)`)

// lookedUp matches how the go command reports that it looks for a module that no go.mod requires.
var lookedUp = regexp.MustCompile(`(?m)^go: (?:finding module for package|found) ([^\s]+)`)

// checkRequirements refuses a plugin that imports a module that its go.mod does not require: the go
// command would use the newest version of today, and another tomorrow.
func (r *recipe) checkRequirements(output string) error {
	match := lookedUp.FindStringSubmatch(output)
	if r.plugins.Empty() || match == nil {
		return nil
	}
	return problem.Invalidf(
		"run `go mod tidy` in the plugin's module; a package of --import must be in a plugin's module, or in one that it "+
			"requires",
		"no go.mod of a plugin requires a module with package %s, which is imported", match[1])
}

// pluginsNeedModules refuses plugins in a build from a repository, whose own module and vendor
// directory have no place for them.
func pluginsNeedModules(release versions.Release) error {
	return problem.Invalidf("remove --source, or the plugins",
		"build %s: plugins require the modules of the release as the source", release)
}
