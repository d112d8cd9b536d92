//go:build linux

package lab

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// maxName keeps the names that contain the lab's name (node, cgroups, image tags) readable and well
// below every limit.
const maxName = 30

var namePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// validateName checks a lab's name.
func validateName(name string) error {
	if len(name) > maxName || !namePattern.MatchString(name) {
		return problem.Invalidf(`use lower case letters, digits and "-", such as "lab" or "pmk-1"`,
			"lab name %q is not a DNS label of at most %d characters", name, maxName)
	}
	return nil
}

// id distinguishes labs with the same name in different state directories. It does not depend on
// how the directory is spelled.
func id(dir string) string {
	if real, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
		dir = filepath.Join(real, filepath.Base(dir))
	}
	if absolute, err := filepath.Abs(dir); err == nil {
		dir = absolute
	}
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:])[:8]
}

// linkName returns the machine's interface name for the lab's network link, which the kernel limits
// to 15 characters.
func linkName(dir string) string { return "pmklab" + id(dir) }

// groupName returns the lab's cgroup name in every hierarchy. Its hosts' cgroups are below it.
func groupName(dir string) string {
	return "pmk-sched-lab-" + filepath.Base(dir) + "-" + id(dir)
}

func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
