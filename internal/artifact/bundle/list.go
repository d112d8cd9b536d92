package bundle

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
)

// list sets a manifest's files to the stage's files that are part of a bundle.
func (m *Manifest) list(ctx context.Context, stage string, earlier *archive) error {
	known := map[string]bool{}
	if earlier != nil {
		m.Since = &Earlier{ID: earlier.id, Releases: earlier.Releases}
		for _, f := range earlier.Files {
			known[f.SHA256] = true
		}
	}
	versions := map[string]bool{}
	err := filepath.WalkDir(stage, func(file string, entry fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil || !entry.Type().IsRegular() {
			return err
		}
		relative, err := filepath.Rel(stage, file)
		if err != nil || !isPart(filepath.ToSlash(relative)) {
			return err
		}
		f := File{Path: filepath.ToSlash(relative)}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		f.Executable = info.Mode()&0o100 != 0
		if f.Size, f.SHA256, err = build.HashFile(file); err != nil {
			return err
		}
		f.Absent = f.Size >= minAbsent && known[f.SHA256]
		if _, version, isGo := build.GoArchive(strings.TrimPrefix(f.Path, downloads+"/")); isGo {
			versions[version] = true
		}
		m.Files = append(m.Files, f)
		return nil
	})
	slices.SortFunc(m.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	for version := range versions {
		m.Go = append(m.Go, version)
	}
	slices.Sort(m.Go)
	return err
}

// isPart reports whether a file in the stage is part of a bundle. Locks and unfinished downloads
// are not. Module hashes are not either, so that Go computes them.
func isPart(name string) bool {
	base := path.Base(name)
	if strings.HasPrefix(name, downloads+"/") && (strings.HasPrefix(name, downloads+"/cache/") ||
		strings.HasSuffix(base, ".lock") || base == "lock" || strings.HasSuffix(base, ".ziphash") ||
		strings.Contains(base, ".tmp") || strings.HasSuffix(base, ".partial")) {
		return false
	}
	return slices.ContainsFunc(roots(), func(root string) bool { return strings.HasPrefix(name, root) })
}
