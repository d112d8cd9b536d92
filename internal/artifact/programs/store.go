package programs

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/versions"
)

// recordFile describes the program in the same directory.
const recordFile = "program.json"

// store is the directory of the cache with published programs:
//
//	published/<release>/<os>-<arch>/<name>/  the program, and program.json
//
// Everything in it can be removed while no program is searched.
type store struct{ dir string }

func (f *Finder) store(r Request) store {
	host := build.Host()
	return store{filepath.Join(f.CacheDir, "published", r.Release.String(), host.OS+"-"+host.Arch)}
}

// load returns a program, and whether it exists and is unchanged since it was added.
func (s store) load(name string, r Request) (Program, bool) {
	var p Program
	text, err := os.ReadFile(filepath.Join(s.dir, name, recordFile))
	if err != nil || json.Unmarshal(text, &p) != nil || p.Name != name {
		return Program{}, false
	}
	if name == Etcd && r.EtcdVersion == "" {
		r.EtcdVersion = p.Version // it was stored for this release
	}
	if exactVersion(p, r) != nil {
		return Program{}, false
	}
	p.Path = filepath.Join(s.dir, name, name)
	_, sum, err := build.HashFile(p.Path)
	return p, err == nil && sum == p.SHA256
}

// temporary returns a path for a program to add, in a directory that the caller removes.
func (s store) temporary(name string) (string, error) {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return "", fmt.Errorf("store %s: %w", name, err)
	}
	dir, err := os.MkdirTemp(s.dir, "."+name+"-")
	if err != nil {
		return "", fmt.Errorf("store %s: %w", name, err)
	}
	return filepath.Join(dir, name), nil
}

// add moves the directory of a program into the store. Another process may have added the same
// program meanwhile.
func (s store) add(p Program) (_ Program, err error) {
	if _, p.SHA256, err = build.HashFile(p.Path); err != nil {
		return p, fmt.Errorf("store %s: %w", p.Name, err)
	}
	record, err := json.MarshalIndent(p, "", "\t")
	if err != nil {
		return p, fmt.Errorf("store %s: %w", p.Name, err)
	}
	from, to := filepath.Dir(p.Path), filepath.Join(s.dir, p.Name)
	if err := os.WriteFile(filepath.Join(from, recordFile), append(record, '\n'), 0o644); err != nil {
		return p, fmt.Errorf("store %s: %w", p.Name, err)
	}
	if err := errors.Join(os.Chmod(from, 0o755), os.RemoveAll(to), os.Rename(from, to)); err != nil {
		return p, fmt.Errorf("store %s: %w", p.Name, err)
	}
	p.Path = filepath.Join(to, p.Name)
	return p, nil
}

// Copy adds programs of a release to the published programs in another build cache directory. A
// Finder finds them there without a network and without Go.
func Copy(cacheDir string, release versions.Release, found map[string]Program) error {
	f := &Finder{Environment: build.Environment{CacheDir: cacheDir}}
	s := f.store(Request{Release: release})
	for _, name := range slices.Sorted(maps.Keys(found)) {
		p := found[name]
		file, err := s.temporary(name)
		if err != nil {
			return err
		}
		if err := build.CopyFile(p.Path, file, 0o755); err != nil {
			return fmt.Errorf("store %s: %w", name, err)
		}
		p.Path = file
		if _, err := s.add(p); err != nil {
			return err
		}
	}
	return nil
}
