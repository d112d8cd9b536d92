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

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// heldDir holds links to manifests that a kubelet may watch. It is near the manifest because a link
// must be on the same file system.
const heldDir = ".pmk-sched-held"

// Swapper replaces a manifest.
//
// A kubelet with a manifest directory watches the directory: a rename into it is one event. A
// kubelet with a single manifest file watches that file's inode (pkg/kubelet/config/file_linux.go).
// Renaming over the file deletes the inode, which the kubelet treats as the pod's removal: it stops
// all containers until it reads the path again, up to 20 s later. Swapper therefore keeps the old
// inode alive with a second link for as long as a process watches it, and changes its mode after
// the rename. The kubelet then reads the path and finds the new manifest.
type Swapper struct {
	Files Files
	// SingleFile is set if the kubelet reads the file itself, not its directory.
	SingleFile bool
}

// ErrEdited is returned when a file changed since it was read.
var ErrEdited = errors.New("the file was edited in the meantime")

// Swap replaces the file at path in one rename if its content still equals old. If old is nil, the
// file must still be missing. The old or the new file exists at all times.
func (s Swapper) Swap(node string, old, next *File) (err error) {
	staged, err := s.Stage(node, next)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, staged.Remove()) }()
	return staged.Swap(old)
}

// Staged is a file that was written near its destination: swapping it in is a rename, which needs
// no free disk space.
type Staged struct {
	swapper Swapper
	// node is the destination on the node, at the same for this process, part the staged file.
	node, at, part string
}

// Stage writes a file near its destination. If a killed run left the same file there, Stage uses
// that.
func (s Swapper) Stage(node string, next *File) (*Staged, error) {
	at, err := s.Files.Resolve(node)
	if err != nil {
		return nil, err
	}
	dir := s.stageDir(at)
	part, err := findStaged(dir, next)
	if err == nil && part == "" {
		part, err = writePart(dir, partPrefix+"*", next)
	}
	if err != nil {
		return nil, problem.NodeFile("write the new file for", node, err)
	}
	staged := &Staged{swapper: s, node: node, at: at, part: part}
	if s.SingleFile {
		// The swap after this one has to keep this inode; the disk may be full then.
		if err := hold(at, part); err != nil {
			return nil, errors.Join(problem.NodeFile("keep the inode of the new file for", node, err), staged.Remove())
		}
	}
	return staged, nil
}

// Swap replaces the file at the destination if its content still equals old. If old is nil, the
// file must still be missing.
func (g *Staged) Swap(old *File) error {
	now, err := os.ReadFile(g.at)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return problem.NodeFile("read", g.node, err)
	}
	if missing != (old == nil) || old != nil && !bytes.Equal(now, old.Data) {
		return problem.Errorf("inspect the file and run again", "swap %s: %w", g.node, ErrEdited)
	}
	if g.swapper.SingleFile && !missing {
		if err := hold(g.at, g.at); err != nil {
			return problem.NodeFile("keep the inode of", g.node, err)
		}
	}
	if err := os.Rename(g.part, g.at); err != nil {
		return problem.NodeFile("swap", g.node, err)
	}
	if err := syncDir(filepath.Dir(g.at)); err != nil {
		return problem.NodeFile("swap", g.node, err)
	}
	if g.swapper.SingleFile {
		return touchHeld(g.at)
	}
	return nil
}

// Remove removes the staged file unless it was swapped in.
func (g *Staged) Remove() error {
	return problem.NodeFile("remove the file staged for", g.node, removeStaged(g.at, g.part))
}

// removeStaged removes a staged file, and the link that keeps its inode: no kubelet ever watched
// it.
func removeStaged(at, part string) error {
	inode, err := inodeOf(part)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	err = errors.Join(err, os.Remove(part))
	for _, link := range held(at) {
		if filepath.Base(link) == strconv.FormatUint(inode, 10) {
			err = errors.Join(err, os.Remove(link))
			_ = syscall.Rmdir(filepath.Dir(link)) // fails if it is not empty
		}
	}
	return err
}

// stageDir returns the directory for staged files: the parent of the directory that the kubelet
// reads if it is on the same file system, else the directory itself, where kubelets ignore names
// that begin with a dot.
func (s Swapper) stageDir(at string) string {
	dir := filepath.Dir(at)
	if above := filepath.Dir(dir); !s.SingleFile && sameDevice(dir, above) {
		return above
	}
	return dir
}

// findStaged returns the path of a staged file with the content, mode and owner of next, or "" if
// there is none.
func findStaged(dir string, next *File) (string, error) {
	left, err := filepath.Glob(filepath.Join(dir, partPrefix+"*"))
	if err != nil {
		return "", err
	}
	plain := Files{Resolve: func(path string) (string, error) { return path, nil }}
	for _, part := range left {
		file, err := plain.Read(part)
		if err != nil || !bytes.Equal(file.Data, next.Data) || file.Mode != next.Mode || file.UID != next.UID ||
			file.GID != next.GID {
			continue
		}
		return part, syncFile(part) // the killed run may not have done that
	}
	return "", nil
}

const partPrefix = ".pmk-sched-manifest-"

// Tidy removes the files that killed runs staged.
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
			failed = errors.Join(failed, removeStaged(at, file))
		}
	}
	return errors.Join(failed, release(at))
}

func sameDevice(a, b string) bool {
	var statA, statB syscall.Stat_t
	return syscall.Stat(a, &statA) == nil && syscall.Stat(b, &statB) == nil && statA.Dev == statB.Dev
}

// hold makes a second link to the inode of file, in a directory near the manifest at.
func hold(at, file string) error {
	inode, err := inodeOf(file)
	if err != nil {
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
	err = os.Link(file, filepath.Join(dir, strconv.FormatUint(inode, 10)))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func inodeOf(file string) (uint64, error) {
	var stat syscall.Stat_t
	err := syscall.Stat(file, &stat)
	return stat.Ino, err
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

// touchHeld makes the kubelet read the path again, whichever former inode it watches: setting a
// mode is an event even if the mode does not change.
func touchHeld(at string) error {
	current, err := inodeOf(at)
	for _, link := range held(at) {
		if filepath.Base(link) == strconv.FormatUint(current, 10) {
			continue
		}
		info, e := os.Stat(link)
		if e == nil {
			e = os.Chmod(link, info.Mode().Perm())
		}
		err = errors.Join(err, e)
	}
	return err
}

// release removes the link to the current file, which exists without it, and links that no process
// watches, from before the kubelet's last start. If no kubelet is visible, the latter stay.
func release(at string) error {
	links := held(at)
	if len(links) == 0 {
		return nil
	}
	current, err := inodeOf(at)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	watched, kubelet := watchedInodes()
	for _, link := range unneeded(links, current, watched, kubelet) {
		err = errors.Join(err, os.Remove(link))
		_ = syscall.Rmdir(filepath.Dir(link)) // fails if it is not empty
	}
	return err
}

// unneeded returns the links to the current inode, and those to inodes that no process watches if a
// kubelet is visible.
func unneeded(links []string, current uint64, watched map[uint64]bool, kubelet bool) (list []string) {
	for _, link := range links {
		inode, err := strconv.ParseUint(filepath.Base(link), 10, 64)
		if err == nil && (inode == current || kubelet && !watched[inode]) {
			list = append(list, link)
		}
	}
	return list
}

// watchedInodes returns the inodes that processes watch (proc(5), fdinfo), and whether a kubelet is
// among the processes. Equal inode numbers in other file systems count too: keeping a link too long
// does no harm.
func watchedInodes() (inodes map[uint64]bool, kubelet bool) {
	inodes = map[uint64]bool{}
	infos, _ := filepath.Glob("/proc/[0-9]*/fdinfo/*")
	for _, file := range infos {
		text, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(text, []byte("inotify wd:")) {
			continue
		}
		if name, _ := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(file)), "comm")); strings.HasPrefix(string(name),
			"kubelet") {
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
