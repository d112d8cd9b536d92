package build

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// cache is the build cache directory:
//
//	build/binaries/<hash of the inputs>/  one binary, and build.json, its description
//	build/facts/…                         descriptions of modules, releases, versions of Go and images
//	build/locks/, build/tmp/              locks and temporary files of running builds
//	build/kept/                           generated modules that were kept
//
// Everything in it can be removed while no build is running.
type cache struct{ dir string }

func newCache(dir string) cache {
	// Commands run in other directories, where a relative path is wrong.
	if absolute, err := filepath.Abs(dir); err == nil {
		dir = absolute
	}
	return cache{dir: filepath.Join(dir, "build")}
}

func (c cache) temporary() string        { return filepath.Join(c.dir, "tmp") }
func (c cache) kept() string             { return filepath.Join(c.dir, "kept") }
func (c cache) binary(key string) string { return filepath.Join(c.dir, "binaries", key) }

// openLock opens the lock file of a binary and creates it if necessary.
func (c cache) openLock(key string) (*os.File, error) {
	path := filepath.Join(c.dir, "locks", key)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
}

// stored is build.json: one binary's description.
type stored struct {
	Info   Info   `json:"info"`
	Binary Binary `json:"binary"`
}

const storedFile = "build.json"

// load returns the binary with the given inputs, and whether it exists and is unchanged since it
// was stored. It hashes the binary, because a binary that lost its content in a power failure keeps
// its size. Hashing 46 MB takes 0.3 s on half a core.
func (c cache) load(key string) (stored, bool) {
	s, found := c.describe(key)
	if !found {
		return stored{}, false
	}
	_, sum, err := HashFile(s.Binary.Path)
	return s, err == nil && sum == s.Binary.SHA256
}

// describe is load without reading the binary.
func (c cache) describe(key string) (stored, bool) {
	var s stored
	dir := c.binary(key)
	if found, err := readJSON(filepath.Join(dir, storedFile), &s); err != nil || !found {
		return stored{}, false
	}
	s.Binary.Path = filepath.Join(dir, s.Binary.Program)
	info, err := os.Stat(s.Binary.Path)
	if err != nil || info.Size() != s.Binary.Size || s.Binary.Inputs != key {
		return stored{}, false
	}
	return s, true
}

// publish moves a directory with a finished binary into the cache, durably. The caller holds the
// lock for key, and load found nothing.
func (c cache) publish(dir, key string, s stored) (Binary, error) {
	if err := writeJSON(filepath.Join(dir, storedFile), s); err != nil {
		return Binary{}, err
	}
	if err := errors.Join(syncPath(filepath.Join(dir, s.Binary.Program)), syncPath(dir)); err != nil {
		return Binary{}, err
	}
	target := c.binary(key)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return Binary{}, err
	}
	if err := os.RemoveAll(target); err != nil {
		return Binary{}, err
	}
	if err := os.Rename(dir, target); err != nil {
		return Binary{}, err
	}
	if err := syncPath(filepath.Dir(target)); err != nil {
		return Binary{}, err
	}
	s.Binary.Path = filepath.Join(target, s.Binary.Program)
	return s.Binary, nil
}

// fact returns the path of a file about a release, a module or a Go version.
func (c cache) fact(kind, name string) string {
	return filepath.Join(c.dir, "facts", kind, filepath.FromSlash(name)+".json")
}

// readJSON reads a file into value. A missing file is not an error.
func readJSON(path string, value any) (bool, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(data, value); err != nil {
		return false, fmt.Errorf("read %s: %w", path, err)
	}
	return true, nil
}

// syncPath writes a file or a directory to the disk.
func syncPath(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// CopyFile copies a file to a path that does not exist, with the given permissions.
func CopyFile(from, to string, mode fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(mode), out.Close())
}

// writeJSON writes a file atomically: after a crash it contains the old or the new content.
func writeJSON(path string, value any) (err error) {
	data, err := json.MarshalIndent(value, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	_, err = file.Write(append(data, '\n'))
	if err = errors.Join(err, file.Chmod(0o644), file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
