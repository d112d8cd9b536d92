package plugins

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The module of the plugin replaces another one with a directory next to it, as modules in one
// repository do.
func TestArchivedPluginHasTheSameSourcesElsewhere(t *testing.T) {
	here := t.TempDir()
	writeFiles(t, here, map[string]string{
		"mine/go.mod": "module example.com/mine\n\ngo 1.21\n\nrequire example.com/shared v0.0.0\n\nreplace " +
			"example.com/shared => ../shared\n",
		"mine/go.sum":       "",
		"mine/p/p.go":       "package p\n\nconst Name = \"P\"\n",
		"mine/README.md":    "not compiled\n",
		"shared/go.mod":     "module example.com/shared\n\ngo 1.21\n",
		"shared/shared.go":  "package shared\n",
		"secret/credential": "SECRET",
	})
	archived, err := Archive(Plugin{Dir: filepath.Join(here, "mine/p")})
	if err != nil {
		t.Fatal(err)
	}
	again, err := Archive(Plugin{Dir: filepath.Join(here, "mine/p")})
	if err != nil || !bytes.Equal(archived, again) {
		t.Errorf("the same sources give other bytes: %v", err)
	}
	if bytes.Contains(archived, []byte("credential")) || bytes.Contains(archived, []byte("README")) {
		t.Error("files that are not compiled are in the archive")
	}
	there := t.TempDir()
	dir, err := Unpack(archived, there)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(here); err != nil {
		t.Fatal(err)
	}
	m, inside, err := (&reader{read: map[string]*pluginModule{}, set: &Set{}}).locateDir(Plugin{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if inside != "p" || m.path != "example.com/mine" || string(m.files["p/p.go"]) != "package p\n\nconst Name = \"P\"\n" ||
		len(m.replacements) != 1 || m.replacements[0].path != "example.com/shared" {
		t.Errorf("%s in %+v", inside, m)
	}
	if _, err := Archive(Plugin{Dir: dir}); err != nil {
		t.Errorf("archived again: %v", err)
	}
}

// Modules of a workspace are found through go.work, whose directories override those of go.mod.
func TestAModuleOfAWorkspaceIsReadWithTheModulesThatItImports(t *testing.T) {
	const lib = "package lib\n\nimport _ \"mono.example.com/base/x\"\n"
	files := map[string]string{
		"go.work": "go 1.21\n\nuse (\n\t./lib\n\t./sched\n\t./base\n\t./other\n)\n\nreplace example.com/old => ./fork\n" +
			"replace example.com/new => example.com/newer v1.2.3\n",
		"lib/go.mod": "module mono.example.com/lib\n\ngo 1.21\n", "lib/lib.go": lib,
		"base/go.mod": "module mono.example.com/base\n\ngo 1.21\n", "base/x/x.go": "package x\n",
		"other/go.mod": "module mono.example.com/other\n\ngo 1.21\n", "other/other.go": "package other\n",
		"fork/go.mod": "module example.com/old\n\ngo 1.21\n", "fork/fork.go": "package old\n",
		"sched/go.mod": "module mono.example.com/sched\n\ngo 1.21\n\nrequire mono.example.com/lib v0.0.0\n\n" +
			"replace mono.example.com/lib => ../published\nreplace example.com/old => ../published\n",
		"sched/sched.go": "package sched\n\nimport _ \"mono.example.com/lib\"\n",
		"alone/go.mod":   "module alone.example.com\n\ngo 1.21\n", "alone/alone.go": "package alone\n",
	}
	dir := t.TempDir()
	writeFiles(t, dir, files)
	read := func(plugin string) (*pluginModule, error) {
		m, _, err := (&reader{read: map[string]*pluginModule{}, set: &Set{}}).locateDir(
			Plugin{Dir: filepath.Join(dir, plugin)})
		return m, err
	}
	m, err := read("sched")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range m.replacements {
		got = append(got, r.path)
	}
	want := []string{"mono.example.com/lib", "example.com/old", "mono.example.com/base"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("modules (-want +got):\n%s", diff)
	}
	if text := string(m.contents()["go.mod"]); !strings.Contains(text, "mono.example.com/lib => ../lib") ||
		!strings.Contains(text, "example.com/new => example.com/newer v1.2.3") {
		t.Errorf("go.mod:\n%s", text)
	}
	if m, err := read("alone"); err != nil || len(m.replacements) > 0 {
		t.Errorf("a module that the workspace does not use: %v, %+v", err, m)
	}
	for broken, want := range map[string]string{"use (": "go.work", "go 1.21\n\nuse ./sched\n\nuse ./gone\n": "go.work uses ./gone"} {
		writeFiles(t, dir, map[string]string{"go.work": broken})
		if _, err := read("sched"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// Anyone who can write Secrets in the namespace of a scheduler can write its revisions.
func TestHostileArchivesAreRefused(t *testing.T) {
	packed := func(comment string, files ...string) []byte {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for _, name := range files {
			f, err := w.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.SetComment(comment); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for name, tt := range map[string]struct {
		text []byte
		want string
	}{
		"not a zip":             {[]byte("x"), "not a valid zip file"},
		"a parent directory":    {packed("module", "module/go.mod", "../../etc/passwd"), "not a file of the archive"},
		"an absolute name":      {packed("module", "/etc/passwd"), "not a file of the archive"},
		"a plugin elsewhere":    {packed("../..", "module/go.mod"), "outside of the archive"},
		"a plugin without name": {packed("", "module/go.mod"), "outside of the archive"},
	} {
		dir := t.TempDir()
		inside := filepath.Join(dir, "a/b")
		if err := os.MkdirAll(inside, 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := Unpack(tt.text, inside); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%s: files outside of the directory: %v, %v", name, entries, err)
		}
	}
}
