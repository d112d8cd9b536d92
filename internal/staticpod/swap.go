package staticpod

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// heldDir holds links to manifests that were replaced. It is near the manifest,
// because a link has to be on the same file system.
const heldDir = ".pmk-sched-held"

// Swapper puts a manifest in the place of another.
//
// A kubelet that is given a folder watches the folder: a rename into it is one
// event. A kubelet that is given a single file watches that file's inode
// (pkg/kubelet/config/file_linux.go): a rename over it deletes the inode, which
// the kubelet takes for the pod's removal, and it stops every container of it
// until it looks at the path again, up to 20 s later. So the old inode is kept
// alive by a second link for as long as somebody watches it, and is touched after
// the rename: the kubelet then reads the path, where the new manifest is.
type Swapper struct {
	Files Files
	// SingleFile says that the kubelet was given the file itself, not its folder.
	SingleFile bool
}

// ErrEdited says that a file is not what it was when it was looked at.
var ErrEdited = errors.New("somebody edited it meanwhile")

// Swap puts next in the place of the manifest at path in one rename, if what is
// there is still old. There is no moment without the file.
func (s Swapper) Swap(node string, old []byte, next *File) (err error) {
	at, err := s.Files.Resolve(node)
	if err != nil {
		return err
	}
	part, err := s.stage(at, next)
	if err != nil {
		return explain("write the new manifest for", node, err)
	}
	defer func() {
		if e := os.Remove(part); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}()
	if s.SingleFile {
		if err := s.hold(at); err != nil {
			return explain("keep the inode of", node, err)
		}
	}
	now, err := os.ReadFile(at)
	if err != nil {
		return explain("read", node, err)
	}
	if !bytes.Equal(now, old) {
		return &Error{Err: fmt.Errorf("swap %s: %w", node, ErrEdited), Try: "look at the file and run again"}
	}
	if err := os.Rename(part, at); err != nil {
		return explain("swap", node, err)
	}
	if err := syncDir(filepath.Dir(at)); err != nil {
		return explain("swap", node, err)
	}
	if s.SingleFile {
		return touchHeld(at)
	}
	return nil
}

// stage writes a manifest beside its place: outside of a folder that a kubelet
// reads, if that is on the same file system; else under a name that begins with a
// dot, which kubelets pass over.
func (s Swapper) stage(at string, next *File) (string, error) {
	dir := filepath.Dir(at)
	if !s.SingleFile && sameDevice(dir, filepath.Dir(dir)) {
		dir = filepath.Dir(dir)
	}
	return writePart(dir, partPrefix+"*", next)
}

const partPrefix = ".pmk-sched-manifest-"

// Tidy removes new manifests that a killed run left beside their place.
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

// hold makes a second link to a file's inode, in a folder near it.
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

// touchHeld makes the kubelet read the path again, whichever of the inodes it
// watches: a change of mode is an event even if the mode is the same.
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

// release removes the links that nobody watches any more: those from before the
// kubelet's last start. Where no kubelet can be seen they stay.
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
			_ = syscall.Rmdir(filepath.Dir(link)) // one that is not empty stays
		}
	}
	return err
}

// watchedInodes collects the inodes that processes watch (proc(5), fdinfo), and
// tells whether a kubelet was among the processes. Inodes of other file systems
// with the same number count too: a link is rather kept than missed.
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
