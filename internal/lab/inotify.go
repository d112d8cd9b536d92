//go:build linux

package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// inotifyOfALab is about how many inotify instances the processes of a lab hold as root: API server, controller manager and
// kubelet six or seven each, and some for pods to come. A component that gets none ends, or never sees its files change.
const inotifyOfALab = 28

// inotifyError says that the kernel has too few inotify instances left for one more lab.
type inotifyError struct{ used, limit int }

func (e *inotifyError) Error() string {
	return fmt.Sprintf("this machine has too few inotify instances left for a lab: %d of %d (fs.inotify.max_user_instances) are in use, and a lab needs about %d", e.used, e.limit, inotifyOfALab)
}

// Hint tells how to make room.
func (e *inotifyError) Hint() string {
	return "take another lab down, or raise the limit: sysctl -w fs.inotify.max_user_instances=512"
}

// checkInotify finds out whether one more lab has enough inotify instances. proc is /proc. Where the kernel does not tell, it has.
func checkInotify(proc string) error {
	text, err := os.ReadFile(filepath.Join(proc, "sys/fs/inotify/max_user_instances"))
	if err != nil {
		return nil //nolint:nilerr // no limit to be found is no reason to refuse
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("read fs.inotify.max_user_instances: %w", err)
	}
	links, err := filepath.Glob(filepath.Join(proc, "[0-9]*/fd/*"))
	if err != nil {
		return err
	}
	used := 0
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.Contains(target, "inotify") {
			used++
		}
	}
	if used+inotifyOfALab > limit {
		return &inotifyError{used: used, limit: limit}
	}
	return nil
}
