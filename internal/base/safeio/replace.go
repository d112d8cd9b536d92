package safeio

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// WriteFile replaces file with the output of write, which goes to a temporary file in the same
// directory. If it fails, file is unchanged. A link is followed. The error is invalid input, and
// write is not called, if file cannot be replaced: its directory does not exist, or it is a
// directory or a device. write may change the mode.
func WriteFile(ctx context.Context, file string, mode fs.FileMode, write func(*os.File) error) (err error) {
	file, err = destination(file)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	defer func() {
		if err != nil {
			if removed := os.Remove(f.Name()); !errors.Is(removed, fs.ErrNotExist) {
				err = errors.Join(err, removed)
			}
		}
	}()
	if err := errors.Join(f.Chmod(mode), write(f)); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Sync(), f.Close(), ctx.Err()); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return os.Rename(f.Name(), file)
}

// destination follows links to the file to write, and refuses targets that must not be replaced
// with a regular file, such as /dev/null or a directory.
func destination(file string) (string, error) {
	info, err := os.Stat(file)
	switch {
	case err == nil && info.IsDir():
		return "", problem.Invalidf("use a file in it", "write %s: it is a directory", file)
	case err == nil && !info.Mode().IsRegular():
		return "", problem.Invalidf("use another file", "write %s: it is not a regular file", file)
	case err == nil:
		return filepath.EvalSymlinks(file)
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("write %s: %w", file, err)
	}
	if _, err := os.Stat(filepath.Dir(file)); err != nil {
		return "", problem.Invalidf("create the directory first", "write %s: %w", file, err)
	}
	return file, nil
}
