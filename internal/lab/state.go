//go:build linux

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
)

const stateFile = "lab.json"

// Get returns the lab name in the directory stateDir. The error is ErrNotFound if there is none.
func Get(stateDir, name string) (*Lab, error) {
	if err := validateName(name); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(filepath.Join(stateDir, name))
	if err != nil {
		return nil, fmt.Errorf("find lab %s: %w", name, err)
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, notFound(stateDir, name)
	} else if err != nil {
		return nil, fmt.Errorf("find lab %s: %w", name, err)
	}
	l := &Lab{dir: dir, state: state{Name: name}}
	data, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil // Up was stopped before it wrote its first file.
	}
	if err != nil {
		return nil, fmt.Errorf("read lab %s: %w", name, err)
	}
	if err := json.Unmarshal(data, &l.state); err != nil {
		return nil, fmt.Errorf("read lab %s: %s: %w", name, filepath.Join(dir, stateFile), err)
	}
	return l, nil
}

// List returns the labs in the directory stateDir by name, including incomplete ones. A directory
// that does not exist holds none.
func List(stateDir string) ([]*Lab, error) {
	entries, err := os.ReadDir(stateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list labs: %w", err)
	}
	var labs []*Lab
	for _, e := range entries {
		if !e.IsDir() || validateName(e.Name()) != nil {
			continue
		}
		l, err := Get(stateDir, e.Name())
		if errors.Is(err, ErrNotFound) {
			continue // Taken down in the meantime.
		}
		if err != nil {
			return nil, err
		}
		labs = append(labs, l)
	}
	sort.Slice(labs, func(i, j int) bool { return labs[i].Name() < labs[j].Name() })
	return labs, nil
}

func notFound(stateDir, name string) error {
	hint := "there are no labs; create one with: pmk-lab up --name " + name
	if labs, err := List(stateDir); err == nil && len(labs) > 0 {
		hint = "labs here:"
		for _, l := range labs {
			hint += " " + l.Name()
		}
	}
	return problem.Invalidf(hint, "%w: %s (searched in %s)", ErrNotFound, name, stateDir)
}

// save writes the state atomically.
func (l *Lab) save() error {
	data, err := json.MarshalIndent(l.state, "", "  ")
	if err != nil {
		return fmt.Errorf("write lab %s: %w", l.Name(), err)
	}
	file := filepath.Join(l.dir, stateFile)
	if err := os.WriteFile(file+".new", append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("write lab %s: %w", l.Name(), err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		return fmt.Errorf("write lab %s: %w", l.Name(), err)
	}
	return nil
}

// errLocked is returned when another process holds a directory's lock.
var errLocked = errors.New("locked by another process")

// lockDir locks a directory. The kernel releases the lock when the process ends. lockDir waits at
// most patience for another holder. The error is fs.ErrNotExist also if that holder removed the
// directory.
func lockDir(ctx context.Context, dir string, patience time.Duration) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = safeio.Lock(limited, f)
	switch {
	case err == nil:
		err = stillAt(dir, f)
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		err = errLocked
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { f.Close() }, nil
}

// stillAt returns fs.ErrNotExist unless path is the open file.
func stillAt(path string, f *os.File) error {
	opened, err := f.Stat()
	if err != nil {
		return err
	}
	now, err := os.Stat(path)
	if err == nil && !os.SameFile(opened, now) {
		err = fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	return err
}

// ErrNotFound is returned for a lab that does not exist.
var ErrNotFound = errors.New("no such lab")

// ErrExists is returned by Up for a lab that already exists.
var ErrExists = errors.New("lab already exists")
