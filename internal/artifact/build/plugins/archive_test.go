package plugins

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
