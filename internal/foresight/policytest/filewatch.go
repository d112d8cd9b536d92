package policytest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
)

// watchInterval is the interval at which files are compared, and the time for which they must stay
// the same after a change: an editor may write several.
const watchInterval = 300 * time.Millisecond

// FileState identifies the files at some paths by name, size and last modification time.
type FileState uint64

// ReadFileState returns the state of files and directory trees, without hidden files. A missing
// file is part of the state.
func ReadFileState(paths []string) (FileState, error) {
	sum := fnv.New64a()
	for _, path := range paths {
		err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				fmt.Fprintln(sum, file)
				return nil
			}
			if err != nil {
				return err
			}
			if file != path && strings.HasPrefix(entry.Name(), ".") {
				if entry.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
			info, err := entry.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil // removed meanwhile
			}
			if err == nil && !entry.IsDir() {
				fmt.Fprintln(sum, file, info.Size(), info.ModTime().UnixNano())
			}
			return err
		})
		if err != nil {
			return 0, fmt.Errorf("watch %s: %w", path, err)
		}
	}
	return FileState(sum.Sum64()), nil
}

// AwaitChange returns when the files at some paths are in another state than last, and then stay as
// they are for a moment.
func AwaitChange(ctx context.Context, paths []string, last FileState) error {
	changed := false
	for {
		if err := clock.Sleep(ctx, watchInterval); err != nil {
			return err
		}
		state, err := ReadFileState(paths)
		if err != nil {
			return err
		}
		if changed && state == last {
			return nil
		}
		if state != last {
			changed, last = true, state
		}
	}
}
