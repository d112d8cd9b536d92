//go:build linux

package lab

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckControllersRefusesMissingControllers(t *testing.T) {
	dir := t.TempDir()
	for handed, missing := range map[string]string{
		"cpuset cpu io memory hugetlb pids rdma misc\n": "",
		"cpu hugetlb\n": "controllers memory, pids are",
		"":              "controllers cpu, memory, pids are",
	} {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.controllers"), []byte(handed), 0o600); err != nil {
			t.Fatal(err)
		}
		err := checkControllers(dir)
		var hint interface{ Hint() string }
		if missing == "" && err != nil || missing != "" &&
			(err == nil || !strings.Contains(err.Error(), missing) || !errors.As(err, &hint)) {
			t.Errorf("with %q: %v", handed, err)
		}
	}
}
