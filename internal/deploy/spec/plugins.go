package spec

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// plugins returns the plugins in the flags, or else the plugins in the document, with complete
// paths. A plugin that both name keeps the document's weight, arguments and extension points.
func (d *document) plugins(flags []string) ([]v1alpha1.Plugin, error) {
	inFile := slices.Clone(d.Spec.Source.Plugins)
	for i := range inFile {
		p := &inFile[i]
		if p.Path == "" || p.Content != nil {
			continue
		}
		var err error
		if p.Path, err = d.path(fmt.Sprintf("spec.source.plugins[%d].path", i), p.Path); err != nil {
			return nil, err
		}
	}
	if len(flags) == 0 {
		return inFile, nil
	}
	var all []v1alpha1.Plugin
	for _, text := range flags {
		p, err := plugins.Parse(text)
		if err != nil {
			return nil, err
		}
		entry := v1alpha1.Plugin{}
		for _, known := range inFile {
			if source, err := pluginSource(known); err == nil && samePlugin(source, p) {
				entry = known
			}
		}
		entry.Content = nil
		entry.Builtin, entry.Path, entry.Module, entry.Package = p.Builtin, p.Dir, p.Module, p.Package
		entry.Name = cmp.Or(p.Name, entry.Name)
		if p.Module != "" {
			entry.Module += "@" + p.Version
		}
		all = append(all, entry)
	}
	return all, nil
}

// packPlugins returns a request's plugins. Recorded sources are unpacked into the cache.
func (s *Spec) packPlugins(list []v1alpha1.Plugin) ([]pack.Plugin, error) {
	var all []pack.Plugin
	for i, entry := range list {
		source, err := pluginSource(entry)
		if err == nil && entry.Content != nil {
			source.Dir, err = unpack(entry.Content, s.flags.CacheDir)
		}
		if err != nil {
			return nil, fmt.Errorf("spec.source.plugins[%d]: %w", i, err)
		}
		plugin := pack.Plugin{Plugin: source, Weight: entry.Weight}
		if entry.Enable != nil {
			plugin.Enable = append([]string{}, *entry.Enable...)
		}
		if entry.Args != "" {
			plugin.Args = []byte(entry.Args)
		}
		all = append(all, plugin)
	}
	return all, nil
}

// pluginSource returns the location of a plugin's code. The field module names no directory.
func pluginSource(e v1alpha1.Plugin) (plugins.Plugin, error) {
	switch {
	case e.Path != "":
		return plugins.Plugin{Dir: e.Path}, nil
	case e.Name != "":
		return plugins.Parse("builtin:" + e.Builtin + "=" + e.Name)
	case e.Builtin != "":
		return plugins.Parse("builtin:" + e.Builtin)
	}
	text := e.Module
	if e.Package != "" {
		text += ":" + e.Package
	}
	p, err := plugins.Parse(text)
	if err == nil && p.Module == "" {
		err = problem.Invalidf("write a directory in the field path", "module %q is not module@version", e.Module)
	}
	return p, err
}

// unpack writes a plugin's recorded sources to the cache, under their hash, unless they are there.
func unpack(content []byte, cache string) (string, error) {
	sum := sha256.Sum256(content)
	parent := filepath.Join(cache, "plugins")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("unpack a plugin: %w", err)
	}
	temporary, err := os.MkdirTemp(parent, "unpack-")
	if err != nil {
		return "", fmt.Errorf("unpack a plugin: %w", err)
	}
	dir, err := plugins.Unpack(content, temporary)
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(temporary))
	}
	to := filepath.Join(parent, hex.EncodeToString(sum[:]))
	inside := strings.TrimPrefix(dir, temporary)
	if err := os.Rename(temporary, to); errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTEMPTY) {
		return to + inside, os.RemoveAll(temporary)
	} else if err != nil {
		return "", fmt.Errorf("unpack a plugin: %w", err)
	}
	return to + inside, nil
}

// archive adds the sources in the directories to a request's plugins, up to a size that fits into a
// revision.
func archive(list []v1alpha1.Plugin) error {
	left := maxRecorded
	for i := range list {
		p := &list[i]
		if p.Path == "" || p.Content != nil {
			left -= len(p.Content)
			continue
		}
		p.Path = absolute(p.Path)
		content, err := plugins.Archive(plugins.Plugin{Dir: p.Path})
		if err != nil {
			return fmt.Errorf("spec.source.plugins[%d]: %w", i, err)
		}
		if left -= len(content); left >= 0 {
			p.Content = content
		}
	}
	return nil
}

// maxRecorded bounds the compressed sources of all plugins in a revision, in bytes. A Secret has 1
// MiB.
const maxRecorded = 512 << 10

// samePlugin compares a flag with an entry in the document, without the names.
func samePlugin(a, b plugins.Plugin) bool {
	a.Dir, b.Dir = absolute(a.Dir), absolute(b.Dir)
	a.Name, b.Name = "", ""
	return a == b
}

func absolute(dir string) string {
	if dir == "" {
		return ""
	}
	if full, err := filepath.Abs(dir); err == nil {
		return full
	}
	return dir
}
