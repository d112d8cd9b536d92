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
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// Down removes the lab name in the directory stateDir: processes, mounts, namespaces, link, cgroups
// and directory. It needs only the name, so it also removes a lab whose Up was killed. The error is
// ErrNotFound if the lab does not exist. If Down fails or ctx ends, calling it again continues.
func Down(ctx context.Context, stateDir, name string, log *zap.Logger) error {
	if log == nil {
		log = zap.NewNop()
	}
	l, err := Get(stateDir, name)
	if err != nil {
		return err
	}
	unlock, err := lockDir(ctx, l.dir, 2*time.Second)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return notFound(stateDir, name)
	case errors.Is(err, errLocked):
		return problem.Errorf("stop the \"lab up\" or \"lab down\" that is running",
			"take down lab %s: another process is working on it", name)
	case err != nil:
		return fmt.Errorf("take down lab %s: %w", name, err)
	}
	defer unlock()
	if err := remove(ctx, l.dir, log); err != nil {
		return fmt.Errorf("take down lab %s: %w", name, err)
	}
	return nil
}

// remove does the work of Down. It removes the directory last: as long as anything is left, the lab
// is known.
func remove(ctx context.Context, dir string, log *zap.Logger) error {
	g, err := newGroup(groupName(dir))
	if err != nil {
		return err
	}
	if err := g.remove(ctx); err != nil {
		return err
	}
	log.Debug("processes ended", zap.String("group", g.name))
	if err := removeLink(linkName(dir)); err != nil {
		return err
	}
	if err := unmountBelow(dir); err != nil {
		return err
	}
	return removeAll(ctx, dir)
}

// unmountBelow detaches the mounts below dir in this mount namespace. A lab mounts nothing there;
// mounts of other processes must not be removed with the directory.
func unmountBelow(dir string) error {
	f, err := os.Open("/proc/self/mounts")
	if err != nil {
		return fmt.Errorf("list mounts: %w", err)
	}
	defer f.Close()
	points, err := mountsBelow(f, dir)
	if err != nil {
		return fmt.Errorf("list mounts: %w", err)
	}
	for i := len(points) - 1; i >= 0; i-- {
		err := unix.Unmount(points[i], unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("unmount %s: %w", points[i], err)
		}
	}
	return nil
}

// mountsBelow reads the mount points below dir in the format of /proc/mounts, in mount order.
func mountsBelow(mounts io.Reader, dir string) ([]string, error) {
	var points []string
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	s := bufio.NewScanner(mounts)
	for s.Scan() {
		f := strings.Fields(s.Text())
		if len(f) < 2 {
			continue
		}
		point := unescape.Replace(f[1])
		if point == dir || strings.HasPrefix(point, dir+string(filepath.Separator)) {
			points = append(points, point)
		}
	}
	return points, s.Err()
}

// removeAll removes the lab's directory. It retries while the kernel still releases the mount
// namespace.
func removeAll(ctx context.Context, dir string) error {
	deadline := time.Now().Add(10 * time.Second)
	for {
		err := os.RemoveAll(dir)
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("remove directory: %w", err)
		}
		if err := clock.Sleep(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("remove directory %s: %w", dir, err)
		}
	}
}
