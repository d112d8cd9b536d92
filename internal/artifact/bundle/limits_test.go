package bundle

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// large sizes are only in the list: no archive of them is written.
func TestManifestsBeyondALimitAreRefused(t *testing.T) {
	sized := func(name string, size int64) File {
		f := fileOf("build/facts/"+name, name)
		f.Size = size
		return f
	}
	many := func(count int, digest string) (files []File) {
		for i := range count {
			f := sized(fmt.Sprintf("%03d", i), maxFile)
			if digest != "" {
				f.SHA256 = digest
			}
			files = append(files, f)
		}
		return files
	}
	changed := func(change func(*File)) []File {
		f := fileOf("build/facts/a", "a")
		change(&f)
		return []File{f}
	}
	same := func(change func(*File)) []File {
		first, second := fileOf("build/facts/a", "a"), fileOf("build/facts/b", "a")
		change(&second)
		return []File{first, second}
	}
	for name, c := range map[string]struct {
		files []File
		want  string
	}{
		"files":                   {make([]File, maxFiles+1), "lists 400001 files, the limit is 400000"},
		"bytes of the limit":      {many(maxTotal/maxFile, ""), ""},
		"bytes":                   {many(maxTotal/maxFile+1, ""), "bytes, the limit is 274877906944"},
		"the same bytes":          {many(maxTotal/maxFile+1, strings.Repeat("ab", 32)), ""},
		"size below zero":         {changed(func(f *File) { f.Size = -1 }), "the size -1"},
		"size of the limit":       {changed(func(f *File) { f.Size = maxFile }), ""},
		"path of the limit":       {changed(func(f *File) { f.Path += strings.Repeat("a", maxPath-len(f.Path)) }), ""},
		"long path":               {changed(func(f *File) { f.Path += strings.Repeat("a", maxPath) }), "the path is not valid"},
		"backslash":               {changed(func(f *File) { f.Path += `\..\evil` }), "the path is not valid"},
		"zero byte":               {changed(func(f *File) { f.Path += "\x00" }), "the path is not valid"},
		"short digest":            {changed(func(f *File) { f.SHA256 = f.SHA256[2:] }), "not a SHA-256 digest"},
		"the same content":        {same(func(*File) {}), ""},
		"two sizes":               {same(func(f *File) { f.Size++ }), "contradict each other"},
		"absent and not absent":   {same(func(f *File) { f.Absent = true }), "contradict each other"},
		"executable and a file":   {same(func(f *File) { f.Executable = true }), ""},
		"directory of an image":   {nil, ""},
		"directory out of images": {nil, "image \"evil\" is not in bundle/images"},
	} {
		m := Manifest{Format: format, Files: c.files, Since: &Earlier{}}
		if c.files == nil {
			m.Images = []Image{{Reference: "good", Directory: imageDir + "/good"}}
		}
		if name == "directory out of images" {
			m.Images = append(m.Images, Image{Reference: "evil", Directory: imageDir + "/good/inner"})
		}
		err := m.check()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestManifestThatIsTooLargeIsNotRead(t *testing.T) {
	var text bytes.Buffer
	header := &tar.Header{Name: manifestFile, Typeflag: tar.TypeReg, Size: maxManifest + 1}
	if err := tar.NewWriter(&text).WriteHeader(header); err != nil {
		t.Fatal(err)
	}
	if _, err := read(&text); err == nil || !strings.Contains(err.Error(), "of at most 67108864 bytes first") {
		t.Errorf("got %v", err)
	}
}

// The first bytes of a zstd file say how much memory its decompression takes.
func TestDecompressionTakesALimitedAmountOfMemory(t *testing.T) {
	const name, content = "build/facts/a", "content"
	archive := archiveOf(t, Manifest{Format: format, Files: []File{fileOf(name, content)}},
		entry{name, content, tar.TypeReg})
	for exponent, accepted := range map[byte]bool{16: true, 17: false} { // 1 KiB << exponent
		block := len(archive)<<3 | 1 // a raw block, the last one
		frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, exponent << 3, byte(block), byte(block >> 8), byte(block >> 16)}
		a, err := read(bytes.NewReader(append(frame, archive...)))
		if (err == nil) != accepted {
			t.Errorf("a window of 1 KiB << %d: got %v, want accepted: %t", exponent, err, accepted)
		}
		if err == nil {
			if err := a.close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestFilesOfALaterBundleAreLeftOutFromASizeOn(t *testing.T) {
	files := map[string]string{
		"build/facts/at":    strings.Repeat("a", minAbsent),
		"build/facts/below": strings.Repeat("b", minAbsent-1),
	}
	later := bundleOf(t, "later.tar", bundleOf(t, "first.tar", "", files), files)
	a, err := open(t.Context(), later)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.close(); err != nil {
		t.Error(err)
	}
	absent := map[string]bool{}
	for _, f := range a.Files {
		absent[f.Path] = f.Absent
	}
	if !absent["build/facts/at"] || absent["build/facts/below"] {
		t.Errorf("absent: %v", absent)
	}
}

// A damaged manifest of an earlier bundle is named.
func TestDamagedManifestInTheDirectoryIsNamed(t *testing.T) {
	files := map[string]string{"build/facts/a": large("a")}
	first := bundleOf(t, "first.tar", "", files)
	dir := t.TempDir()
	if err := unpack(t, first, dir); err != nil {
		t.Fatal(err)
	}
	manifests, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(manifestDir), "*.json"))
	if err != nil || len(manifests) != 1 {
		t.Fatalf("manifests %v, %v", manifests, err)
	}
	text, err := json.Marshal(Manifest{Format: format + 1})
	if err == nil {
		err = os.WriteFile(manifests[0], text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	err = unpack(t, bundleOf(t, "later.tar", first, files), dir)
	if err == nil || !strings.Contains(err.Error(), manifests[0]) {
		t.Errorf("got %v, want an error with %s", err, manifests[0])
	}
}
