package image

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// The program of a container's image is found as in an image that is read from elsewhere: by the
// container's command and its PATH.
func TestCopyProgramReadsTheProgramOfTheContainerItRunsIn(t *testing.T) {
	const other = "another program"
	for name, c := range map[string]struct {
		files   map[string]string
		environ []string
		workDir string
		command []string
		want    Program
		content string
	}{
		"by name": {files: map[string]string{SchedulerPath: "s", "/go-runner": other},
			command: []string{"kube-scheduler"}, want: Program{Path: SchedulerPath}, content: "s"},
		"with a log runner": {files: map[string]string{SchedulerPath: "s", "/go-runner": other},
			command: []string{"/go-runner", SchedulerPath}, want: Program{Path: SchedulerPath}, content: "s"},
		"in the PATH": {files: map[string]string{"/opt/kube-scheduler": "s", SchedulerPath: other},
			environ: []string{"PATH=/opt:/bin"}, command: []string{"kube-scheduler"}, want: Program{Path: "/opt/kube-scheduler"},
			content: "s"},
		"in the directory": {files: map[string]string{"/work/bin/kube-scheduler": "s"}, workDir: "/work",
			command: []string{"bin/kube-scheduler"}, want: Program{Path: "/work/bin/kube-scheduler"}, content: "s"},
		"no command": {files: map[string]string{"/kube-scheduler": "s"}, want: Program{Path: "/kube-scheduler"},
			content: "s"},
		"a runner is missing": {files: map[string]string{SchedulerPath: "s"}, command: []string{"/go-runner", SchedulerPath},
			want: Program{Path: SchedulerPath, Missing: "/go-runner"}, content: "s"},
		"another place": {files: map[string]string{SchedulerPath: "s"}, command: []string{"/usr/bin/kube-scheduler"},
			want: Program{Path: SchedulerPath, Missing: "/usr/bin/kube-scheduler"}, content: "s"},
		"none": {files: map[string]string{"/bin/sh": other}, command: []string{"kube-scheduler"},
			want: Program{Missing: "kube-scheduler"}},
	} {
		t.Run(name, func(t *testing.T) {
			root, to := t.TempDir(), filepath.Join(t.TempDir(), "kube-scheduler")
			for file, text := range c.files {
				at := filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(at, []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			got, err := CopyProgram(root, c.environ, c.workDir, c.command, to)
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if c.content == "" {
				if !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(to)
			if err != nil || string(text) != c.content {
				t.Errorf("copied %q, %v", text, err)
			}
			if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o755 {
				t.Errorf("mode %v, %v", info, err)
			}
		})
	}
}
