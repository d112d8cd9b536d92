package staticpod

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// Files accesses a node's files. All paths are paths on the node.
type Files struct {
	// Resolve maps a path on the node to a path in this process and follows links.
	Resolve func(path string) (string, error)
}

// File is a file's content with its mode and owner.
type File struct {
	Data     []byte
	Mode     fs.FileMode
	UID, GID int
}

// Read reads a regular file. It returns fs.ErrNotExist if the file does not exist.
func (f Files) Read(path string) (_ *File, err error) {
	at, err := f.Resolve(path)
	if err != nil {
		return nil, err
	}
	in, err := os.Open(at)
	if err != nil {
		return nil, problem.NodeFile("read", path, err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	info, err := in.Stat()
	if err != nil {
		return nil, problem.NodeFile("read", path, err)
	}
	if !info.Mode().IsRegular() || info.Size() > MaxSize {
		return nil, fmt.Errorf("read %s: not a regular file of at most %d bytes", path, MaxSize)
	}
	file := &File{Mode: info.Mode().Perm()}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		file.UID, file.GID = int(owner.Uid), int(owner.Gid)
	}
	if file.Data, err = io.ReadAll(io.LimitReader(in, MaxSize)); err != nil {
		return nil, problem.NodeFile("read", path, err)
	}
	return file, nil
}

// Write replaces a file atomically and durably: after a crash the old or the new file is at the
// path. Write creates missing directories.
func (f Files) Write(path string, file *File) error {
	at, err := f.Resolve(path)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return problem.NodeFile("write", path, err)
	}
	part, err := writePart(filepath.Dir(at), "."+filepath.Base(at)+".pmk-sched-*", file)
	if err != nil {
		return problem.NodeFile("write", path, err)
	}
	if err := os.Rename(part, at); err != nil {
		return problem.NodeFile("write", path, errors.Join(err, os.Remove(part)))
	}
	return problem.NodeFile("write", path, syncDir(filepath.Dir(at)))
}

// Remove removes a file. A missing file is not an error.
func (f Files) Remove(path string) error {
	at, err := f.Resolve(path)
	if err != nil {
		return err
	}
	if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return problem.NodeFile("remove", path, err)
	}
	return nil
}

// RemoveEmpty removes a directory if it is empty.
func (f Files) RemoveEmpty(path string) {
	if at, err := f.Resolve(path); err == nil {
		_ = syscall.Rmdir(at) // fails if it is not empty
	}
}

// CheckSpace checks that a directory, or its nearest existing parent, is writable and that the
// given number of bytes is free.
func (f Files) CheckSpace(path string, bytes uint64) error {
	at, err := f.Resolve(path)
	if err != nil {
		return err
	}
	for {
		if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break
		}
		at = filepath.Dir(at)
	}
	var stat syscall.Statfs_t
	if err := syscall.Statfs(at, &stat); err != nil {
		return problem.NodeFile("check free space in", path, err)
	}
	if free := stat.Bavail * uint64(stat.Bsize); free < bytes || stat.Files > 0 && stat.Ffree < 16 {
		return problem.Errorf("free disk space; nothing was changed",
			"check free space in %s: disk full: %d bytes free, %d needed", path, free, bytes)
	}
	const writeable = 2 // W_OK
	if err := syscall.Access(at, writeable); err != nil {
		return problem.WithHint(problem.NodeFile("write to", path, err), runAsRoot)
	}
	return nil
}

// writePart writes a temporary file and returns its name.
func writePart(dir, pattern string, file *File) (name string, err error) {
	part, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return "", err
	}
	_, err = part.Write(file.Data)
	err = errors.Join(err, part.Chmod(file.Mode), part.Chown(file.UID, file.GID), part.Sync(), part.Close())
	if err != nil {
		return "", errors.Join(err, os.Remove(part.Name()))
	}
	return part.Name(), nil
}

// syncDir makes a rename in a directory durable.
func syncDir(dir string) error { return syncFile(dir) }

// syncFile makes the content of a file or directory durable.
func syncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Hash returns the SHA-256 of a file's content, in hexadecimal.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

const runAsRoot = "run as root on the control-plane node"
