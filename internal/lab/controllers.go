//go:build linux

package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// checkControllers refuses a version 2 group that has not been handed what every
// container is limited by: none would start in it.
func checkControllers(dir string) error {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("read the controllers of a control group: %w", err)
	}
	handed := strings.Fields(string(data))
	missing := slices.DeleteFunc([]string{"cpu", "memory", "pids"}, func(c string) bool { return slices.Contains(handed, c) })
	if len(missing) == 0 {
		return nil
	}
	return &hintError{
		err: fmt.Errorf("this machine does not hand the controllers %s on to control group %s", strings.Join(missing, ", "), dir),
		hint: "run the lab on the machine itself; in a container, move the processes of its topmost control group into one below first, " +
			"because the kernel hands nothing on from a group that has both",
	}
}
