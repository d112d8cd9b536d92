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

// Hash returns a hash of what is compiled in besides the release: the sources of bundled plugins and
// of directories, and the names of modules. It is the same on every machine and in every order, and
// needs neither Go nor a network. It is empty without plugins and imports.
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
		files := maps.Clone(m.files)
		files["go.mod"], files["go.sum"] = modfile.Format(m.mod.Syntax), []byte(m.sums)
		contents[m.path] = files
	}
	if r.set.api == nil && sources != nil {
		files, err := readSources(sources)
		if err != nil {
			return "", err
		}
		contents[APIModule] = files
	}
	slices.Sort(names)
	data, err := json.Marshal([]any{names, slices.Compact(slices.Sorted(slices.Values(imports))), contents})
	if err != nil {
		return "", fmt.Errorf("hash plugins: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}
