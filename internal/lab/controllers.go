//go:build linux

package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// checkControllers refuses a version 2 group without the controllers that containers need: none
// would start.
func checkControllers(dir string) error {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("read the controllers of a cgroup: %w", err)
	}
	handed := strings.Fields(string(data))
	missing := slices.DeleteFunc([]string{"cpu", "memory", "pids"},
		func(c string) bool { return slices.Contains(handed, c) })
	if len(missing) == 0 {
		return nil
	}
	return problem.Errorf(
		"run the lab on the machine itself; in a container, first move the processes of its root cgroup into a child, "+
			"because the kernel enables no controllers for the children of a cgroup with processes",
		"controllers %s are not enabled in cgroup %s", strings.Join(missing, ", "), dir)
}
