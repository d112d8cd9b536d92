package spec

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
)

// unconfirmedCode returns the code in a recorded request that this machine's user has not named, or
// nil. Bundled plugins are pmk-sched's code, and the user named the code that this machine built
// for the deployed image.
func (s *Spec) unconfirmedCode(source v1alpha1.Source) *pack.Unconfirmed {
	if s.file.local {
		return nil
	}
	var built v1alpha1.Recipe
	if s.file.built != nil {
		built = *s.file.built
	}
	foreign := v1alpha1.Source{}
	for _, p := range source.Plugins {
		known := slices.ContainsFunc(built.Plugins, func(known v1alpha1.Plugin) bool { return sameCode(known, p) })
		if p.Builtin == "" && !known {
			foreign.Plugins = append(foreign.Plugins, p)
		}
	}
	for _, path := range source.Imports {
		if !slices.Contains(built.Imports, path) {
			foreign.Imports = append(foreign.Imports, path)
		}
	}
	if len(foreign.Plugins)+len(foreign.Imports) == 0 {
		return nil
	}
	return &pack.Unconfirmed{Origin: s.file.origin, Content: contents(foreign, v1alpha1.Image{})}
}

// unconfirmedImage returns the content of an image whose name comes from a cluster, or nil.
func (s *Spec) unconfirmedImage(name string, d v1alpha1.CustomSchedulerSpec) *pack.Unconfirmed {
	if s.again == "" || s.targeted {
		return nil
	}
	return &pack.Unconfirmed{Origin: s.again, Image: name, Content: contents(d.Source, d.Image)}
}

// sameCode reports whether two recorded plugins are the same code.
func sameCode(a, b v1alpha1.Plugin) bool {
	if b.Path != "" {
		return b.Content != nil && bytes.Equal(a.Content, b.Content)
	}
	return b.Module != "" && a.Module == b.Module && a.Package == b.Package
}

// contents returns a line for each field that decides an image's contents.
func contents(s v1alpha1.Source, i v1alpha1.Image) (lines []string) {
	line := func(kind, value string) {
		if value != "" {
			lines = append(lines, kind+" "+value)
		}
	}
	line("source", s.From)
	for _, p := range s.Plugins {
		line("plugin", plainPlugin(p))
	}
	for _, path := range s.Imports {
		line("import", path)
	}
	line("Go", s.Go)
	line("base", i.Base)
	line("busybox", i.Busybox)
	line("platforms", strings.Join(i.Platforms, ", "))
	return lines
}

// plainPlugin returns a plugin with the hash of its recorded sources, which is the name of their
// directory below plugins/ in the build cache.
func plainPlugin(p v1alpha1.Plugin) string {
	if p.Content != nil {
		return fmt.Sprintf("%s, sha256:%x", p.Path, sha256.Sum256(p.Content))
	}
	if source, err := pluginSource(p); err == nil {
		return source.String()
	}
	return p.Path + p.Module
}
