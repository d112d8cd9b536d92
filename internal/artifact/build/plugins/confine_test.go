package plugins

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An archive comes out of a cluster. The sources in it become part of an image that is pushed, so
// none of them is a file of this machine.
func TestUnpackedSourcesAreThoseOfTheArchive(t *testing.T) {
	machine := t.TempDir()
	writeFiles(t, machine, map[string]string{
		"go.mod":              "module example.com/home\n\ngo 1.21\n",
		"home.go":             "package home\n\nconst Name = \"SECRET\"\n",
		"private/go.mod":      "module example.com/private\n\ngo 1.21\n",
		"private/private.go":  "package private\n\nconst Name = \"SECRET\"\n",
		"cache/plugins/a/.in": "",
	})
	private := filepath.Join(machine, "private")
	const plain = "module example.com/p\n\ngo 1.21\n"
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"a replaced module in an absolute directory": {map[string]string{
			"module/go.mod": plain + "\nreplace example.com/x => " + private + "\n"}, "outside of the archive"},
		"a replaced module in a parent": {map[string]string{
			"module/go.mod": plain + "\nreplace example.com/x => ../../../../private\n"}, "outside of the archive"},
		"a workspace": {map[string]string{"module/go.mod": plain,
			"go.work": "go 1.21\n\nuse ./module\nuse " + private + "\n"}, "go.work"},
		"no module": {map[string]string{"module/p.go": "package p\n"}, "no go.mod"},
		"a module above the plugin": {map[string]string{"other/go.mod": plain, "module/p.go": "package p\n"},
			"no go.mod"},
		"assembly that includes a file": {map[string]string{"module/go.mod": plain,
			"module/p_amd64.s": "#include \"" + private + "/private.go\"\n"}, "include"},
		"assembly that includes a file in disguise": {map[string]string{"module/go.mod": plain,
			"module/p_amd64.s": "#/**/include/*\n*/\"\\x2fetc/passwd\"\n"}, "include"},
		"assembly that includes headers": {map[string]string{"module/go.mod": plain,
			"module/p_amd64.s": "// Include files first.\n#include \"textflag.h\"\n#include \"inner/p.h\"\n"}, ""},
		// The go command ignores what other modules than the main one replace.
		"a module": {map[string]string{"module/go.mod": plain + "\nreplace example.com/x => ../replaced/0\n",
			"replaced/0/go.mod": "module example.com/x\n\nreplace example.com/y => ../y\n"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string][]byte{}
			for name, text := range tt.files {
				files[name] = []byte(text)
			}
			var packed bytes.Buffer
			if err := writeZip(&packed, files, "module"); err != nil {
				t.Fatal(err)
			}
			to := filepath.Join(machine, "cache/plugins", strings.ReplaceAll(name, " ", "-"))
			if err := os.MkdirAll(to, 0o755); err != nil {
				t.Fatal(err)
			}
			_, err := Unpack(packed.Bytes(), to)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
