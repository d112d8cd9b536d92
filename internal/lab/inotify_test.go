//go:build linux

package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckInotifyRefusesTooFewInstances(t *testing.T) {
	for _, tt := range []struct {
		name        string
		limit, used int
		refused     bool
	}{
		{"enough for another", 128, 128 - inotifyOfMaster, false},
		{"one too few", 128, 129 - inotifyOfMaster, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			proc := t.TempDir()
			for i := range tt.used {
				fd := filepath.Join(proc, "17", "fd")
				if err := os.MkdirAll(fd, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink("anon_inode:inotify", filepath.Join(fd, fmt.Sprint(i))); err != nil {
					t.Fatal(err)
				}
			}
			limits := filepath.Join(proc, "sys/fs/inotify")
			if err := os.MkdirAll(limits, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(limits, "max_user_instances"), fmt.Appendln(nil, tt.limit), 0o600); err != nil {
				t.Fatal(err)
			}
			err := checkInotify(proc, inotifyOfMaster)
			if (err != nil) != tt.refused {
				t.Fatalf("%d of %d used: %v", tt.used, tt.limit, err)
			}
			if err != nil && !strings.Contains(err.Error(), "fs.inotify.max_user_instances") {
				t.Errorf("error does not contain the limit: %v", err)
			}
		})
	}
}
