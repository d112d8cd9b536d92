//go:build linux

package lab

import (
	"fmt"
	"path/filepath"
	"sort"
	"strings"
)

const tailLines = 12

// withLogs adds to err the last lines of the logs for step s.
func (u *bringUp) withLogs(s step, err error) error {
	var b strings.Builder
	for _, name := range s.logs {
		for _, h := range u.lab.hosts() {
			writeTail(&b, h.logFile(name))
		}
	}
	if u.programs["kubelet"] != "" && len(s.logs) > 0 && s.logs[0] == "kubelet" {
		for _, n := range u.lab.masters() {
			for _, name := range components() {
				writeTail(&b, newestContainerLog(n.Root(), name))
			}
		}
	}
	if b.Len() == 0 {
		return err
	}
	return fmt.Errorf("%w\n%s", err, strings.TrimRight(b.String(), "\n"))
}

func writeTail(b *strings.Builder, path string) {
	if path == "" {
		return
	}
	if tail := logTail(path, tailLines); tail != "" {
		fmt.Fprintf(b, "--- last lines of %s\n%s\n", path, tail)
	}
}

// newestContainerLog finds the log of a control-plane container, which the kubelet names
// NAMESPACE_POD_UID/CONTAINER/RESTART.log.
func newestContainerLog(root, container string) string {
	files, _ := filepath.Glob(filepath.Join(root, "var/log/pods/kube-system_*", container, "*.log"))
	if len(files) == 0 {
		return ""
	}
	sort.Strings(files)
	return files[len(files)-1]
}

func lastLines(s string, n int) string {
	all := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(all[max(0, len(all)-n):], "\n")
}
