//go:build linux

package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
)

// hierarchy is a cgroup hierarchy: a controller of version 1, or version 2.
type hierarchy struct {
	path   string
	v2     bool
	cpuset bool
	// options mounts a version 1 hierarchy again: its controllers or its name.
	options string
}

// hierarchies reads the cgroup hierarchies in the format of /proc/mounts.
func hierarchies(mounts io.Reader) ([]hierarchy, error) {
	var found []hierarchy
	s := bufio.NewScanner(mounts)
	for s.Scan() {
		f := strings.Fields(s.Text())
		if len(f) < 4 || (f[2] != "cgroup" && f[2] != "cgroup2") {
			continue
		}
		if slices.ContainsFunc(found, func(h hierarchy) bool { return h.path == f[1] }) {
			continue
		}
		h := hierarchy{path: f[1], v2: f[2] == "cgroup2"}
		if !h.v2 {
			h.options = treeOptions(f[3])
			h.cpuset = slices.Contains(strings.Split(h.options, ","), "cpuset")
		}
		found = append(found, h)
	}
	return found, s.Err()
}

// treeOptions returns the options of a version 1 mount that identify its hierarchy.
func treeOptions(options string) string {
	var kept []string
	for o := range strings.SplitSeq(options, ",") {
		switch {
		case strings.HasPrefix(o, "name="):
			kept = append(kept, "none", o)
		case slices.Contains([]string{"rw", "ro", "nosuid", "nodev", "noexec", "relatime", "noatime", "seclabel",
			"xattr", "clone_children", "noprefix"}, o),
			strings.HasPrefix(o, "release_agent="):
		default:
			kept = append(kept, o)
		}
	}
	return strings.Join(kept, ",")
}

func machineHierarchies() ([]hierarchy, error) {
	f, err := os.Open("/proc/mounts")
	if err != nil {
		return nil, fmt.Errorf("find cgroups: %w", err)
	}
	defer f.Close()
	hs, err := hierarchies(f)
	if err == nil && len(hs) == 0 {
		err = errors.New("no cgroup file system is mounted")
	}
	if err != nil {
		return nil, fmt.Errorf("find cgroups: %w", err)
	}
	return hs, nil
}

// group is a cgroup of a lab, with the same name in every hierarchy. The lab's own group has one
// child for each host. A host sees its group as the root, "/", of a cgroup namespace: everything
// that a kubelet or a user creates is below it. The host's processes are in its child hostGroup.
type group struct {
	name        string
	hierarchies []hierarchy
}

const hostGroup = "node"

func newGroup(name string) (group, error) {
	hs, err := machineHierarchies()
	return group{name: name, hierarchies: hs}, err
}

func (g group) child(name string) group {
	return group{name: filepath.Join(g.name, name), hierarchies: g.hierarchies}
}

func (g group) dirs() []string {
	var dirs []string
	for _, h := range g.hierarchies {
		dirs = append(dirs, filepath.Join(h.path, g.name))
	}
	return dirs
}

func (g group) create() error {
	if err := g.makeDirs(); err != nil {
		return err
	}
	for _, h := range g.hierarchies {
		if h.v2 {
			delegate(h.path)
		}
	}
	g.delegate()
	if slices.ContainsFunc(g.hierarchies, func(h hierarchy) bool { return !h.v2 }) {
		return nil
	}
	return checkControllers(g.dirs()[0])
}

// createHost creates the group of a host and its child for the host's processes.
func (g group) createHost() error {
	return errors.Join(g.makeDirs(), g.child(hostGroup).makeDirs())
}

func (g group) makeDirs() error {
	for i, dir := range g.dirs() {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("create cgroup: %w", err)
		}
		if g.hierarchies[i].cpuset {
			if err := inheritCPUs(dir); err != nil {
				return fmt.Errorf("create cgroup: %w", err)
			}
		}
	}
	return nil
}

// delegate enables the controllers for the group's children. With version 2 the group must have no
// processes: a host's holder has left it.
func (g group) delegate() {
	for i, h := range g.hierarchies {
		if h.v2 {
			delegate(g.dirs()[i])
		}
	}
}

// delegate enables every controller of a version 2 group for its children, as far as the kernel
// permits.
func delegate(dir string) {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return
	}
	for _, c := range strings.Fields(string(data)) {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0o644)
	}
}

// inheritCPUs fills a version 1 cpuset group, which is created empty and accepts no process until
// it is filled.
func inheritCPUs(dir string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		have, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return err
		}
		if len(strings.TrimSpace(string(have))) > 0 {
			continue
		}
		data, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// processes returns the IDs of all processes in the group and below.
func (g group) processes() ([]int, error) {
	seen := map[int]bool{}
	for _, dir := range g.dirs() {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return ignoreGone(err)
			}
			data, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
			if err != nil {
				return ignoreGone(err)
			}
			for _, field := range strings.Fields(string(data)) {
				if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
					seen[pid] = true
				}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read cgroup: %w", err)
		}
	}
	pids := make([]int, 0, len(seen))
	for pid := range seen {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return pids, nil
}

// ignoreGone drops errors for a group that was removed in the meantime, or whose processes cannot
// be listed because it holds threads.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}

// kill kills every process of the group, including processes that start in the meantime, such as a
// container that is being created.
func (g group) kill(ctx context.Context) error {
	deadline := time.Now().Add(30 * time.Second)
	for {
		pids, err := g.processes()
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("kill processes %v: still running 30s after SIGKILL", pids)
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		if err := clock.Sleep(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("kill processes %v: %w", pids, err)
		}
	}
}

// remove kills every process of the group and removes it, with everything below, from every
// hierarchy. The kernel refuses for a moment after the last process has exited, and while a new
// process joins.
func (g group) remove(ctx context.Context) error {
	deadline := time.Now().Add(15 * time.Second)
	for {
		if err := g.kill(ctx); err != nil {
			return err
		}
		var errs []error
		for _, dir := range g.dirs() {
			errs = append(errs, removeGroupDir(dir))
		}
		err := errors.Join(errs...)
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("remove cgroup: %w", err)
		}
		if err := clock.Sleep(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("remove cgroup %s: %w", g.name, err)
		}
	}
}

// removeGroupDir removes a group's directory after its subdirectories. The kernel removes the files
// in it.
func removeGroupDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ignoreGone(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeGroupDir(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return ignoreGone(unix.Rmdir(dir))
}
