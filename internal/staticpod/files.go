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
)

// Files are the files of a node. Paths given to its methods are the node's own.
type Files struct {
	// Resolve tells where a node's path is for this process, links followed.
	Resolve func(path string) (string, error)
}

// File is the content of a file with what a restored one has to have.
type File struct {
	Data     []byte
	Mode     fs.FileMode
	UID, GID int
}

// Read reads a regular file. One that is not there is fs.ErrNotExist.
func (f Files) Read(path string) (_ *File, err error) {
	at, err := f.Resolve(path)
	if err != nil {
		return nil, err
	}
	in, err := os.Open(at)
	if err != nil {
		return nil, explain("read", path, err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	info, err := in.Stat()
	if err != nil {
		return nil, explain("read", path, err)
	}
	if !info.Mode().IsRegular() || info.Size() > MaxSize {
		return nil, fmt.Errorf("read %s: it is no regular file of at most %d bytes", path, MaxSize)
	}
	file := &File{Mode: info.Mode().Perm()}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		file.UID, file.GID = int(owner.Uid), int(owner.Gid)
	}
	if file.Data, err = io.ReadAll(io.LimitReader(in, MaxSize)); err != nil {
		return nil, explain("read", path, err)
	}
	return file, nil
}

// Write puts a file in place as a whole, durably: after a crash it is the old or the
// new one. Folders above it are made.
func (f Files) Write(path string, file *File) error {
	at, err := f.Resolve(path)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return explain("write", path, err)
	}
	part, err := writePart(filepath.Dir(at), "."+filepath.Base(at)+".pmk-sched-*", file)
	if err != nil {
		return explain("write", path, err)
	}
	if err := os.Rename(part, at); err != nil {
		return explain("write", path, errors.Join(err, os.Remove(part)))
	}
	return explain("write", path, syncDir(filepath.Dir(at)))
}

// Remove removes a file; it is no error if it is not there.
func (f Files) Remove(path string) error {
	at, err := f.Resolve(path)
	if err != nil {
		return err
	}
	if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return explain("remove", path, err)
	}
	return nil
}

// RemoveEmpty removes a folder if nothing is in it.
func (f Files) RemoveEmpty(path string) {
	if at, err := f.Resolve(path); err == nil {
		_ = syscall.Rmdir(at) // one that is not empty stays
	}
}

// Room checks that a folder, or the first above it that is there, can be written
// to and has room.
func (f Files) Room(path string, bytes uint64) error {
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
		return explain("look for room in", path, err)
	}
	if free := stat.Bavail * uint64(stat.Bsize); free < bytes || stat.Files > 0 && stat.Ffree < 16 {
		return &Error{Err: fmt.Errorf("look for room in %s: the disk is full: %d bytes are free and %d are needed", path, free, bytes), Try: "make room; nothing was touched"}
	}
	const writeable = 2 // W_OK
	if err := syscall.Access(at, writeable); err != nil {
		return &Error{Err: explain("write to", path, err), Try: "run as root on the control-plane node"}
	}
	return nil
}

// writePart writes a file under a name of its own and returns that.
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

// syncDir makes a rename in a folder last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Hash is the SHA-256 of a file's content, in hexadecimal.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// explain names the file as the node knows it.
func explain(doing, path string, err error) error {
	if err == nil {
		return nil
	}
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	err = fmt.Errorf("%s %s: %w", doing, path, err)
	if errors.Is(err, fs.ErrPermission) {
		return &Error{Err: err, Try: "run as root on the control-plane node"}
	}
	return err
}
