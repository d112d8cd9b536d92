package pack

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/versions"
)

// locking writes or compares the lock of one build.
type locking struct {
	// lockFile is written, lockedFile is compared with, unless they are empty.
	lockFile, lockedFile string
	locked, built        *lock
}

// newLocking reads the lock to compare with. If the request leaves a minor release or the digest of
// a tag open, newLocking sets it from the lock.
func newLocking(r *Request) (*locking, error) {
	l := &locking{lockFile: r.Lock, lockedFile: r.Locked}
	if r.Locked == "" {
		return l, nil
	}
	var err error
	if l.locked, err = readLock(r.Locked); err != nil {
		return nil, err
	}
	if release, err := versions.Parse(l.locked.Release); err == nil && isMinorOf(r.Branch, release) {
		r.Branch = l.locked.Release
	}
	return l, l.pinBase(&r.Base)
}

// pinBase adds the locked digest to a base in a registry, unless the base has a digest or is another one.
func (l *locking) pinBase(base *image.Base) error {
	if base.Reference == "" || strings.Contains(base.Reference, "@") || !strings.Contains(l.locked.Base, "@") {
		return nil
	}
	same, err := image.SameRepository(base.Reference, l.locked.Base)
	if same {
		base.Reference = l.locked.Base
	}
	return err
}

// minorBranch matches a branch that names no patch.
var minorBranch = regexp.MustCompile(`^(?:v|release-)?([0-9]+\.[0-9]+)$`)

// isMinorOf reports whether a branch is the minor of a release: v1.24, 1.24 or release-1.24.
func isMinorOf(branch string, release versions.Release) bool {
	match := minorBranch.FindStringSubmatch(branch)
	return match != nil && match[1] == release.MinorString()
}

// check compares the binaries and their inputs, before anything is written.
func (l *locking) check(version string, built *build.Result) (err error) {
	if l.lockFile == "" && l.lockedFile == "" {
		return nil
	}
	if l.built, err = newLock(version, built); err != nil {
		return err
	}
	return l.compare()
}

// checkBase compares the base image.
func (l *locking) checkBase(made *image.Built) error {
	if l == nil || l.built == nil {
		return nil
	}
	l.built.Base = cmp.Or(made.Base, made.BaseDigest)
	return l.compare()
}

func (l *locking) compare() error {
	if l.locked == nil {
		return nil
	}
	if differences := l.locked.differences(l.built); len(differences) > 0 {
		return &LockedError{File: l.lockedFile, Differences: differences}
	}
	return nil
}

// write writes the lock of the build.
func (l *locking) write(result *Result) error {
	if l.lockFile == "" {
		return nil
	}
	if err := l.built.write(l.lockFile); err != nil {
		return err
	}
	result.Written = append(result.Written, l.lockFile)
	return nil
}
