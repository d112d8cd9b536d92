package plugins

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"golang.org/x/mod/modfile"
)

// Hash returns a hash of the code that is compiled into a release's program: the sources of bundled
// plugins and directories, and module names. It is the same on every machine and in every order,
// and needs neither Go nor a network. It is empty without plugins and imports.
func Hash(plugins []Plugin, imports []string, sources fs.FS) (string, error) {
	if len(plugins)+len(imports) == 0 {
		return "", nil
	}
	r := &reader{options: Options{Sources: sources}, read: map[string]*pluginModule{}, set: &Set{}}
	var names []string
	for _, p := range plugins {
		if p.Dir == "" {
			names = append(names, p.String())
			continue
		}
		m, dir, err := r.locateDir(p)
		if err != nil {
			return "", err
		}
		names = append(names, m.path+" "+dir)
	}
	contents := map[string]map[string][]byte{}
	for _, m := range r.set.modules {
		contents[m.path] = m.contents()
	}
	if r.set.api == nil && sources != nil {
		files, err := readSources(sources)
		if err != nil {
			return "", err
		}
		contents[APIModule] = files
	}
	slices.Sort(names)
	sum, err := hashJSON([]any{names, slices.Compact(slices.Sorted(slices.Values(imports))), contents})
	if err != nil {
		return "", fmt.Errorf("hash plugins: %w", err)
	}
	return sum, nil
}

// contents returns the module's files by name, with its go.mod and go.sum.
func (m *pluginModule) contents() map[string][]byte {
	files := maps.Clone(m.files)
	if m.mod != nil { // the module of the bundled plugins has none
		files["go.mod"], files["go.sum"] = modfile.Format(m.mod.Syntax), []byte(m.sums)
	}
	return files
}

// sum returns the hash of the module and the directories that it replaces modules with.
func (m *pluginModule) sum() (string, error) {
	contents := map[string]map[string][]byte{m.path: m.contents()}
	for _, other := range m.replacements {
		contents[other.path] = other.contents()
	}
	return hashJSON(contents)
}

// hashJSON returns the hash of a value's JSON, in which map keys are sorted.
func hashJSON(value any) (string, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}
