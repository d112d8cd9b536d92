package build

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"go.uber.org/zap"
	"golang.org/x/mod/modfile"

	"github.com/pmk-sched/pmk-sched/versions"
)

// PluginsHash is a hash of what is compiled in besides the release: the sources
// of shipped plugins and of folders, the names of modules. It is the same on
// every machine, whatever the order, and needs neither Go nor a network. It is
// empty without plugins and imports.
func PluginsHash(plugins []Plugin, imports []string, sources fs.FS) (string, error) {
	if len(plugins)+len(imports) == 0 {
		return "", nil
	}
	r := &pluginReader{sources: sources, read: map[string]*pluginModule{}, set: &pluginSet{}}
	var names []string
	for _, p := range plugins {
		if p.Dir == "" {
			names = append(names, p.String())
			continue
		}
		m, dir, err := r.locateFolder(p)
		if err != nil {
			return "", err
		}
		names = append(names, m.path+" "+dir)
	}
	contents := map[string]map[string][]byte{}
	for _, m := range r.set.modules {
		files := maps.Clone(m.files)
		files["go.mod"], files["go.sum"] = modfile.Format(m.mod.Syntax), []byte(m.sums)
		contents[m.path] = files
	}
	if r.set.api == nil && sources != nil {
		files, err := readSources(sources)
		if err != nil {
			return "", err
		}
		contents[apiModule] = files
	}
	slices.Sort(names)
	data, err := json.Marshal([]any{names, slices.Compact(slices.Sorted(slices.Values(imports))), contents})
	if err != nil {
		return "", fmt.Errorf("hash plugins: %w", err)
	}
	return hash(data), nil
}

// PluginOptions says which plugins ReadPlugins reads, and for which release.
type PluginOptions struct {
	Release versions.Release
	// Plugins, Sources, CacheDir and Env are as in Options.
	Plugins  []Plugin
	Sources  fs.FS
	CacheDir string
	Env      []string
	Log      *zap.Logger
	OnStep   func(name string) (done func(err error))
}

// ReadPlugins says what is known of plugins from their sources, in the order in
// which they were given, and refuses those that a build of the release would
// refuse before it compiles. Only plugins of a module need Go and, unless they
// were downloaded before, the network.
func ReadPlugins(ctx context.Context, o PluginOptions) (_ []PluginInfo, err error) {
	rules, _, err := versions.Select(o.Release)
	if err != nil {
		return nil, err
	}
	if o.CacheDir == "" {
		return nil, noCache()
	}
	j := newJob(o.CacheDir, "", false, o.Env, o.Log, o.OnStep)
	defer j.close(&err)
	set, err := j.pluginSet(ctx, Options{Release: o.Release, Plugins: o.Plugins, Sources: o.Sources}, rules, rules.Go)
	if err != nil || set == nil {
		return nil, err
	}
	var infos []PluginInfo
	for _, given := range o.Plugins {
		i := slices.IndexFunc(set.plugins, func(p resolvedPlugin) bool { return p.given == given })
		infos = append(infos, set.plugins[i].info)
	}
	return infos, nil
}

// Builtins returns the names of the shipped plugins in the sources of this
// program's own module.
func Builtins(sources fs.FS) ([]string, error) {
	files, err := readSources(sources)
	if err != nil {
		return nil, fmt.Errorf("look for shipped plugins: %w", err)
	}
	return builtins(&pluginModule{files: files}), nil
}
