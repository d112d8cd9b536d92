package main

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// archive is a pmk-sched archive for one platform.
type archive struct {
	OS, Arch, File, SHA256 string
}

// packed are the files from r.stage in the pmk-sched archives, apart from the programs.
func packed() []string { return []string{"LICENSE", "completion", "man"} }

// archives writes a pmk-sched archive for each platform and one pmk-extender archive for Linux,
// which runs next to schedulers. It returns the pmk-sched archives.
func (r release) archives() ([]archive, error) {
	var list []archive
	for _, platform := range []archive{
		{OS: "darwin", Arch: "amd64"}, {OS: "darwin", Arch: "arm64"},
		{OS: "linux", Arch: "amd64"}, {OS: "linux", Arch: "arm64"},
	} {
		sched, err := r.archive(programsOf(platform), platform, packed()...)
		if err != nil {
			return nil, err
		}
		list = append(list, sched)
		if platform.OS != "linux" {
			continue
		}
		if _, err := r.archive([]string{"pmk-extender"}, platform, "LICENSE"); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// programsOf returns the programs in a pmk-sched archive. Labs need Linux.
func programsOf(a archive) []string {
	if a.OS != "linux" {
		return []string{"pmk-sched"}
	}
	return []string{"pmk-sched", "pmk-lab"}
}

// archive writes PROGRAM_VERSION_OS_ARCH.tar.gz, named after the first program, with programs and
// files in r.stage.
func (r release) archive(programs []string, a archive, names ...string) (archive, error) {
	a.File = fmt.Sprintf("%s_%s_%s_%s.tar.gz", programs[0], r.version, a.OS, a.Arch)
	var files []file
	for _, program := range programs {
		files = append(files, file{name: program, source: filepath.Join(r.stage, a.OS+"_"+a.Arch, program), mode: 0o755})
	}
	for _, name := range names {
		found, err := filesBelow(r.stage, name)
		if err != nil {
			return a, fmt.Errorf("write %s: %w", a.File, err)
		}
		files = append(files, found...)
	}
	to := filepath.Join(r.dist, a.File)
	err := writeFile(to, func(w io.Writer) error {
		gz, err := gzip.NewWriterLevel(w, gzip.BestCompression)
		if err != nil {
			return err
		}
		return errors.Join(writeTar(gz, files, r.modified), gz.Close())
	})
	if err != nil {
		return a, fmt.Errorf("write %s: %w", to, err)
	}
	a.SHA256, err = sum(to)
	return a, err
}

// file is a file in an archive.
type file struct {
	name, source string
	mode         int64
}

// filesBelow returns the file root/name, or all files below that directory, as readable by all.
func filesBelow(root, name string) ([]file, error) {
	var files []file
	err := fs.WalkDir(os.DirFS(root), name, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			files = append(files, file{name: name, source: filepath.Join(root, filepath.FromSlash(name)), mode: 0o644})
		}
		return err
	})
	return files, err
}

// writeTar writes a tar archive that depends only on names, modes and contents of the files, and on
// the time. The owner is root.
func writeTar(w io.Writer, files []file, modified time.Time) error {
	tw := tar.NewWriter(w)
	for _, f := range slices.SortedFunc(slices.Values(files), func(a, b file) int { return cmp.Compare(a.name, b.name) }) {
		if err := addFile(tw, f, modified); err != nil {
			return err
		}
	}
	return tw.Close()
}

func addFile(tw *tar.Writer, f file, modified time.Time) error {
	in, err := os.Open(f.source)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: path.Clean(strings.TrimPrefix(f.name, "/")), Size: info.Size(), Mode: f.mode,
		ModTime: modified, Format: tar.FormatPAX,
	}
	if err := tw.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(tw, in)
	return err
}

// writeFile creates a file, readable by all.
func writeFile(to string, write func(io.Writer) error) error {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(write(out), out.Close())
}
