package staticpod

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/pmk-sched/pmk-sched/internal/problem"
)

// heldDir holds links to replaced manifests. It is near the manifest because a link must be on the
// same file system.
const heldDir = ".pmk-sched-held"

// Swapper replaces a manifest.
//
// A kubelet with a manifest directory watches the directory: a rename into it is one event. A
// kubelet with a single manifest file watches the inode of that file
// (pkg/kubelet/config/file_linux.go). Renaming over the file deletes the inode, which the kubelet
// treats as the removal of the pod: it stops all containers until it reads the path again, up to 20
// s later. Swapper therefore keeps the old inode alive with a second link for as long as a process
// watches it, and changes its mode after the rename. The kubelet then reads the path and finds the
// new manifest.
type Swapper struct {
	Files Files
	// SingleFile is set if the kubelet reads the file itself, not its directory.
	SingleFile bool
}

// ErrEdited is returned when a file changed since it was read.
var ErrEdited = errors.New("the file was edited in the meantime")

// Swap replaces the manifest at path in one rename if its content is still old. The file exists at
// all times.
func (s Swapper) Swap(node string, old []byte, next *File) (err error) {
	at, err := s.Files.Resolve(node)
	if err != nil {
		return err
	}
	part, err := s.stage(at, next)
	if err != nil {
		return problem.NodeFile("write the new manifest for", node, err)
	}
	defer func() {
		if e := os.Remove(part); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}()
	if s.SingleFile {
		if err := s.hold(at); err != nil {
			return problem.NodeFile("keep the inode of", node, err)
		}
	}
	now, err := os.ReadFile(at)
	if err != nil {
		return problem.NodeFile("read", node, err)
	}
	if !bytes.Equal(now, old) {
		return problem.Errorf("inspect the file and run again", "swap %s: %w", node, ErrEdited)
	}
	if err := os.Rename(part, at); err != nil {
		return problem.NodeFile("swap", node, err)
	}
	if err := syncDir(filepath.Dir(at)); err != nil {
		return problem.NodeFile("swap", node, err)
	}
	if s.SingleFile {
		return touchHeld(at)
	}
	return nil
}

// stage writes a manifest next to its destination: outside the directory that the kubelet reads if
// that is on the same file system, else under a name that begins with a dot, which kubelets ignore.
func (s Swapper) stage(at string, next *File) (string, error) {
	dir := filepath.Dir(at)
	if !s.SingleFile && sameDevice(dir, filepath.Dir(dir)) {
		dir = filepath.Dir(dir)
	}
	return writePart(dir, partPrefix+"*", next)
}

const partPrefix = ".pmk-sched-manifest-"

// Tidy removes staged manifests of a killed run.
func (s Swapper) Tidy(node string) error {
	at, err := s.Files.Resolve(node)
	if err != nil {
		return err
	}
	var failed error
	for _, dir := range []string{filepath.Dir(at), filepath.Dir(filepath.Dir(at))} {
		left, err := filepath.Glob(filepath.Join(dir, partPrefix+"*"))
		failed = errors.Join(failed, err)
		for _, file := range left {
			failed = errors.Join(failed, os.Remove(file))
		}
	}
	return errors.Join(failed, release(at))
}

func sameDevice(a, b string) bool {
	var statA, statB syscall.Stat_t
	return syscall.Stat(a, &statA) == nil && syscall.Stat(b, &statB) == nil && statA.Dev == statB.Dev
}

// hold makes a second link to the inode of a file, in a directory near it.
func (s Swapper) hold(at string) error {
	var stat syscall.Stat_t
	if err := syscall.Stat(at, &stat); err != nil {
		return err
	}
	dir := filepath.Dir(at)
	if above := filepath.Dir(dir); sameDevice(dir, above) {
		dir = above
	}
	dir = filepath.Join(dir, heldDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	err := os.Link(at, filepath.Join(dir, strconv.FormatUint(stat.Ino, 10)))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// held returns the links.
func held(at string) []string {
	var links []string
	for _, dir := range []string{filepath.Dir(at), filepath.Dir(filepath.Dir(at))} {
		found, _ := filepath.Glob(filepath.Join(dir, heldDir, "*")) // only a bad pattern fails
		links = append(links, found...)
	}
	return links
}

// touchHeld makes the kubelet read the path again, whichever inode it watches: setting a mode is an
// event even if the mode does not change.
func touchHeld(at string) (err error) {
	for _, link := range held(at) {
		info, e := os.Stat(link)
		if e == nil {
			e = os.Chmod(link, info.Mode().Perm())
		}
		err = errors.Join(err, e)
	}
	return err
}

// release removes links that no process watches: those from before the last start of the kubelet.
// If no kubelet is visible, the links stay.
func release(at string) (err error) {
	links := held(at)
	if len(links) == 0 {
		return nil
	}
	watched, kubelet := watchedInodes()
	if !kubelet {
		return nil
	}
	for _, link := range links {
		inode, e := strconv.ParseUint(filepath.Base(link), 10, 64)
		if e == nil && !watched[inode] {
			err = errors.Join(err, os.Remove(link))
			_ = syscall.Rmdir(filepath.Dir(link)) // fails if it is not empty
		}
	}
	return err
}

// watchedInodes returns the inodes that processes watch (proc(5), fdinfo), and whether a kubelet is
// among the processes. Equal inode numbers of other file systems count too: keeping a link too long
// does no harm.
func watchedInodes() (inodes map[uint64]bool, kubelet bool) {
	inodes = map[uint64]bool{}
	infos, _ := filepath.Glob("/proc/[0-9]*/fdinfo/*")
	for _, file := range infos {
		text, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(text, []byte("inotify wd:")) {
			continue
		}
		if name, _ := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(file)), "comm")); strings.HasPrefix(string(name), "kubelet") {
			kubelet = true
		}
		for _, word := range strings.Fields(string(text)) {
			if hex, ok := strings.CutPrefix(word, "ino:"); ok {
				if inode, err := strconv.ParseUint(hex, 16, 64); err == nil {
					inodes[inode] = true
				}
			}
		}
	}
	return inodes, kubelet
}
