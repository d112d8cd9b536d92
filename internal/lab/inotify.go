//go:build linux

package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// The approximate numbers of inotify instances that a node's processes hold as root: on a
// control-plane node six or seven each for API server, controller manager and kubelet, and some for
// pods. A component that gets none exits, or misses changes to its files.
const inotifyOfMaster, inotifyOfWorker = 28, 10

// checkInotify checks that there are enough inotify instances for another lab, which needs so many.
// proc is /proc. If the limit is unknown, there are.
func checkInotify(proc string, needed int) error {
	text, err := os.ReadFile(filepath.Join(proc, "sys/fs/inotify/max_user_instances"))
	if err != nil {
		return nil //nolint:nilerr // without a known limit there is nothing to check
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
	if used+needed > limit {
		const hint = "take another lab down, or raise the limit: sysctl -w fs.inotify.max_user_instances=512"
		return problem.Errorf(hint, "this machine has too few inotify instances left for the lab: "+
			"%d of %d (fs.inotify.max_user_instances) are in use, and the lab needs about %d", used, limit, needed)
	}
	return nil
}
