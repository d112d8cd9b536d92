package plugins

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// embeddingFiles are in the directory of a package. Each is named after the reason to embed it or
// not.
var embeddingFiles = []string{
	"a.txt", "b.txt", "c.yaml", "two words.txt", "_hidden.txt", ".hidden.txt",
	"dir/in.txt", "dir/deep/in.txt", "dir/_hidden.txt", "dir/.hidden.txt", "dir/.git/config",
	"dir/x_test.go", "dir/testdata/in.txt",
	"dir/module/go.mod", "dir/module/in.txt", "vendor/v/v.txt", ".git/config", "bin/program",
}

func TestEmbeddedFilesAreThoseThatTheGoCommandEmbeds(t *testing.T) {
	dir := t.TempDir()
	inDir := []string{"dir/deep/in.txt", "dir/in.txt", "dir/testdata/in.txt", "dir/x_test.go"}
	tests := map[string]struct {
		directives string
		want       []string
	}{
		"file":             {"//go:embed a.txt", []string{"a.txt"}},
		"several":          {"//go:embed a.txt c.yaml", []string{"a.txt", "c.yaml"}},
		"lines":            {"//go:embed a.txt\n//go:embed c.yaml", []string{"a.txt", "c.yaml"}},
		"quoted":           {"//go:embed \"two words.txt\" `a.txt`", []string{"a.txt", "two words.txt"}},
		"glob":             {"//go:embed [ab].txt ?.yaml", []string{"a.txt", "b.txt", "c.yaml"}},
		"hidden by name":   {"//go:embed _hidden.txt .hidden.txt", []string{".hidden.txt", "_hidden.txt"}},
		"directory":        {"//go:embed dir", inDir},
		"all of directory": {"//go:embed all:dir", append([]string{"dir/.hidden.txt", "dir/_hidden.txt"}, inDir...)},
		"glob below":       {"//go:embed dir/*.txt", []string{"dir/.hidden.txt", "dir/_hidden.txt", "dir/in.txt"}},
		"vendored":         {"//go:embed vendor/v", []string{"vendor/v/v.txt"}},
		"comment":          {"// see //go:embed a.txt", nil},
	}
	write(t, filepath.Join(dir, "go.mod"), "module example.com/m\n\ngo 1.18\n")
	for name, test := range tests {
		pkg := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		write(t, filepath.Join(pkg, "p.go"), "package p\n\nimport \"embed\"\n\n"+test.directives+"\nvar files embed.FS\n")
		// Not a file of the package, but it does not hide the patterns of files that are.
		write(t, filepath.Join(pkg, "a_generator.go"), "//go:build ignore\n\npackage main\n")
		for _, file := range embeddingFiles {
			text := "package x\n"
			if path.Base(file) == "go.mod" {
				text = "module example.com/other\n"
			}
			write(t, filepath.Join(pkg, filepath.FromSlash(file)), text)
		}
	}
	m, err := readModule(dir)
	if err != nil {
		t.Fatal(err)
	}
	byGo := listEmbedded(t, dir)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pkg := strings.ReplaceAll(name, " ", "-")
			var got []string
			for _, file := range m.names() {
				if in, found := strings.CutPrefix(file, pkg+"/"); found && in != "p.go" && in != "a_generator.go" {
					got = append(got, in)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("embedded files (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(byGo["example.com/m/"+pkg], got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("embedded files (-go command +got):\n%s", diff)
			}
		})
	}
}

// listEmbedded returns the files that the go command embeds, by package.
func listEmbedded(t *testing.T, dir string) map[string][]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,EmbedFiles", "./...")
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off"), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for list := json.NewDecoder(strings.NewReader(string(out))); ; {
		var pkg struct {
			ImportPath string
			EmbedFiles []string
		}
		if err := list.Decode(&pkg); err == io.EOF {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		found[pkg.ImportPath] = pkg.EmbedFiles
	}
}

// A program that was built in a module's own directory is not part of the module.
func TestLargeFilesThatAreNotEmbeddedAreNotRead(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module example.com/m\n")
	write(t, filepath.Join(dir, "m.go"), "package m\n\nimport \"embed\"\n\n//go:embed small.txt\nvar files embed.FS\n")
	write(t, filepath.Join(dir, "small.txt"), "x")
	large := filepath.Join(dir, "bin", "large")
	write(t, large, "")
	if err := os.Truncate(large, maxModuleBytes+1); err != nil {
		t.Fatal(err)
	}
	m, err := readModule(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"m.go", "small.txt"}, m.names()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	write(t, filepath.Join(dir, "m.go"), "package m\n\nimport \"embed\"\n\n//go:embed bin\nvar files embed.FS\n")
	_, err = readModule(dir)
	if want := "more than 128 MB of sources and embedded files"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("embedded: got %v, want %q", err, want)
	}
}

func TestLinksAreNotEmbedded(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	write(t, filepath.Join(outside, "secret.txt"), "x")
	for name, pattern := range map[string]string{"a link": "link.txt", "a file below a link": "linked/secret.txt"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "go.mod"), "module example.com/m\n")
			write(t, filepath.Join(dir, "m.go"), "package m\n\nimport \"embed\"\n\n//go:embed "+pattern+"\nvar files embed.FS\n")
			for link, to := range map[string]string{"link.txt": filepath.Join(outside, "secret.txt"), "linked": outside} {
				if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
					t.Fatal(err)
				}
			}
			_, err := readModule(dir)
			want := "pattern " + pattern + ": cannot embed irregular file link"
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}
