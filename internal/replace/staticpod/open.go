package staticpod

import (
	"errors"
	"os"
	"slices"
)

// Open returns the backups that describe the present state, the newest first: the backups from
// killed runs and the backup from the last successful replacement. It returns nil if the node runs
// its original manifest.
func Open(list []*Backup) []*Backup {
	var open []*Backup
	for _, b := range list {
		switch b.State {
		case Replaced:
			return append(open, b)
		case Started:
			open = append(open, b)
		}
	}
	return open
}

// Current returns a node's newest open backup, or nil if no backup is open.
func Current(files Files) (*Backup, error) {
	list, err := Backups(files)
	if open := Open(list); len(open) > 0 {
		return open[0], err
	}
	return nil, err
}

// Knows reports whether one of the backups has a file's content, other than as its original.
func Knows(list []*Backup, file string, data []byte) bool {
	hash := Hash(data)
	return slices.ContainsFunc(list, func(b *Backup) bool {
		saved := b.File(file)
		return saved != nil && (hash == saved.Written || hash == saved.Previous)
	})
}

// Prune removes finished backups, except the newest keep of them.
func Prune(list []*Backup, keep int) error {
	var failed error
	for _, b := range list {
		if b.State == Started || b.State == Replaced {
			continue
		}
		if keep--; keep < 0 {
			failed = errors.Join(failed, os.RemoveAll(b.dir))
		}
	}
	return failed
}
