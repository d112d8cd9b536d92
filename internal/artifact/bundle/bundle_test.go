package bundle

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
)

func testSession(t *testing.T, dir string) *session.Session {
	t.Helper()
	return &session.Session{
		CacheDir: dir, Warn: func(text string) { t.Log(text) }, Note: func(text string) { t.Log(text) },
		OnStep: func(string) func(error) { return func(error) {} },
	}
}

// large is a content that a later bundle leaves out.
func large(text string) string { return strings.Repeat(text, minAbsent) }

// stageOf returns a build cache directory with files. The names of executables end in !.
func stageOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		mode := fs.FileMode(0o644)
		if strings.HasSuffix(name, "!") {
			name, mode = strings.TrimSuffix(name, "!"), 0o755
		}
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), mode)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// bundleOf writes a bundle of files and returns its path.
func bundleOf(t *testing.T, name, since string, files map[string]string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	earlier, err := readEarlier(t.Context(), since)
	if err != nil {
		t.Fatal(err)
	}
	c := &creation{
		Options: Options{Archive: file}, user: testSession(t, t.TempDir()), staged: testSession(t, stageOf(t, files)),
		manifest: Manifest{Format: format, Releases: []string{"v1.24.3"}, Images: []Image{}},
	}
	if _, err := c.write(t.Context(), earlier); err != nil {
		t.Fatal(err)
	}
	return file
}

// tree returns the files below a directory with their contents, without the manifests.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, file)
		data, err := os.ReadFile(file)
		info, _ := entry.Info()
		if info.Mode()&0o111 != 0 {
			name += "!"
		}
		if !strings.HasPrefix(filepath.ToSlash(name), manifestDir) {
			files[filepath.ToSlash(name)] = string(data)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func unpack(t *testing.T, file, dir string) error {
	t.Helper()
	_, err := Unpack(t.Context(), file, "", testSession(t, dir))
	return err
}

func firstFiles() map[string]string {
	return map[string]string{
		"published/v1.24.3/linux-amd64/kubelet/kubelet!":            large("kubelet"),
		"build/binaries/00/kubelet!":                                large("kubelet"),
		"build/facts/staging/v1.24.3.json":                          "{}",
		downloads + "/example.com/a/@v/v1.0.0.zip":                  large("a"),
		"bundle/images/localhost_kube-scheduler_v1.24.3/index.json": "{}",
		SelfPath + "!": "pmk-sched",
		// contents that an executable and another file have, each as the first one
		"build/binaries/01/first!": "#1", "build/facts/second": "#1",
		"build/facts/third": "#2", "published/v1.24.3/linux-amd64/fourth/fourth!": "#2",
	}
}

func TestUnpackedFilesAreThoseOfTheBundle(t *testing.T) {
	for name, magic := range map[string]string{
		"b.tar": manifestFile, "b.tar.gz": "\x1f\x8b", "b.tgz": "\x1f\x8b", "b.tar.zst": "\x28\xb5\x2f\xfd",
	} {
		dir := t.TempDir()
		file := bundleOf(t, name, "", firstFiles())
		if err := unpack(t, file, dir); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(firstFiles(), tree(t, dir)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		again, err := os.ReadFile(bundleOf(t, name, "", firstFiles()))
		first, _ := os.ReadFile(file)
		if err != nil || !bytes.Equal(first, again) {
			t.Errorf("%s: the same files gave other bytes (%v)", name, err)
		}
		if !bytes.HasPrefix(first, []byte(magic)) {
			t.Errorf("%s begins with %q", name, first[:4])
		}
		if size := int64(len(first)); name == "b.tar" && size > 10*minAbsent {
			t.Errorf("%s has %d bytes: a content is in it twice", name, size)
		}
		if err := unpack(t, file, dir); err != nil {
			t.Errorf("unpack %s again: %v", name, err)
		}
	}
}

func TestOnlyTheBundleWithTheGivenDigestIsUnpacked(t *testing.T) {
	file, dir := bundleOf(t, "b.tar", "", firstFiles()), t.TempDir()
	first, err := Unpack(t.Context(), file, "", testSession(t, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	changed := firstFiles()
	changed[SelfPath+"!"] = "another program"
	other := bundleOf(t, "b.tar", "", changed)
	_, err = Unpack(t.Context(), other, first.ID, testSession(t, dir))
	if err == nil || !strings.Contains(err.Error(), "expected "+first.ID) || len(tree(t, dir)) > 0 {
		t.Errorf("got %v and the files %v", err, tree(t, dir))
	}
	if _, err := Unpack(t.Context(), file, first.ID, testSession(t, dir)); err != nil {
		t.Error(err)
	}
}

func TestFilesOutsideOfABundleAreLeftOut(t *testing.T) {
	files := firstFiles()
	for _, name := range []string{"build/tmp/build-1/x", "build/locks/x", "bundle/mod/example.com/a@v1.0.0/a.go",
		downloads + "/example.com/a/@v/v1.0.0.lock", downloads + "/lock", downloads + "/example.com/a/@v/v1.0.0.zip1.tmp",
		downloads + "/example.com/a/@v/v1.0.0.partial", downloads + "/example.com/a/@v/v1.0.0.ziphash", downloads + "/cache/lock"} {
		files[name] = name
	}
	dir := t.TempDir()
	if err := unpack(t, bundleOf(t, "b.tar", "", files), dir); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(firstFiles(), tree(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLaterBundleHasOnlyWhatDiffers(t *testing.T) {
	first := bundleOf(t, "first.tar", "", firstFiles())
	more := firstFiles()
	delete(more, "build/binaries/00/kubelet!")
	more["published/v1.24.4/linux-amd64/kubelet/kubelet!"] = large("kubelet") // the same bytes elsewhere
	more[downloads+"/example.com/b/@v/v1.0.0.zip"] = large("b")
	later := bundleOf(t, "later.tar", first, more)

	if info, err := os.Stat(later); err != nil || info.Size() > 3*minAbsent {
		t.Errorf("the later bundle has %d bytes (%v)", info.Size(), err)
	}
	empty := t.TempDir()
	err := unpack(t, later, empty)
	if !problem.IsInvalid(err) || !strings.Contains(strings.Join(problem.Hints(err), " "), "sha256:") {
		t.Errorf("without the first bundle: got %v, hints %q", err, problem.Hints(err))
	}
	if got := tree(t, empty); len(got) > 0 {
		t.Errorf("the refused bundle left %d files", len(got))
	}
	dir := t.TempDir()
	if err := errors.Join(unpack(t, first, dir), unpack(t, later, dir)); err != nil {
		t.Fatal(err)
	}
	want := firstFiles()
	for name, content := range more {
		want[name] = content
	}
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	third := bundleOf(t, "third.tar", later, more)
	if err := unpack(t, third, dir); err != nil {
		t.Errorf("a bundle after the later one: %v", err)
	}
	changed := filepath.Join(dir, "published/v1.24.3/linux-amd64/kubelet/kubelet")
	for _, file := range []string{changed, filepath.Join(dir, "build/binaries/00/kubelet"),
		filepath.Join(dir, "published/v1.24.4/linux-amd64/kubelet/kubelet")} {
		if err := errors.Join(os.Remove(file), os.WriteFile(file, []byte("other"), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unpack(t, later, dir); !problem.IsInvalid(err) {
		t.Errorf("with a changed file of the first bundle: got %v", err)
	}
}

// entry is a file of a hostile archive.
type entry struct {
	name, content string
	kind          byte
}

// archiveOf returns an archive with a manifest of files and with entries.
func archiveOf(t testing.TB, m Manifest, entries ...entry) []byte {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range append([]entry{{manifestFile, string(text), tar.TypeReg}}, entries...) {
		header := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: 0o644}
		if header.Size = int64(len(e.content)); e.kind != tar.TypeReg {
			header.Size, header.Linkname = 0, e.content
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if header.Size > 0 {
			if _, err := io.WriteString(w, e.content); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func fileOf(path, content string) File {
	return File{Path: path, Size: int64(len(content)), SHA256: strings.TrimPrefix(digest([]byte(content)), "sha256:")}
}

func TestHostileBundleIsRefusedAndLeavesNothing(t *testing.T) {
	const name, content = "build/facts/a", "content"
	with := func(files ...File) Manifest { return Manifest{Format: format, Files: files} }
	good := entry{name, content, tar.TypeReg}
	long := fileOf(name, content)
	long.Size = maxFile + 1
	absent := fileOf(name, content)
	absent.Absent = true
	upper := fileOf(name, content)
	upper.SHA256 = strings.ToUpper(upper.SHA256)
	whole := archiveOf(t, with(fileOf(name, content)), good)
	for title, text := range map[string][]byte{
		"empty":                {},
		"text":                 []byte("a text\n"),
		"truncated":            whole[:len(whole)-1024-509],
		"truncated manifest":   whole[:600],
		"changed":              bytes.Replace(whole, []byte(content), []byte("CONTENT"), 1),
		"traversal":            archiveOf(t, with(fileOf("build/facts/../../../evil", content))),
		"absolute":             archiveOf(t, with(fileOf("/build/facts/evil", content))),
		"other directory":      archiveOf(t, with(fileOf("bundle/go/go1.99/bin/go", content))),
		"manifests":            archiveOf(t, with(fileOf(manifestDir+"/a.json", content))),
		"root":                 archiveOf(t, with(fileOf("build/facts", content))),
		"other format":         archiveOf(t, Manifest{Format: format + 1}),
		"twice in the list":    archiveOf(t, with(fileOf(name, content), fileOf(name, content)), good),
		"not in order":         archiveOf(t, with(fileOf("build/facts/b", "b"), fileOf(name, content))),
		"file and directory":   archiveOf(t, with(fileOf(name, content), fileOf(name+"/b", "b")), good),
		"size too large":       archiveOf(t, with(long)),
		"other size":           archiveOf(t, with(fileOf(name, content+"!")), good),
		"upper-case digest":    archiveOf(t, with(upper), good),
		"absent without since": archiveOf(t, with(absent)),
		"image elsewhere":      archiveOf(t, Manifest{Format: format, Images: []Image{{Directory: "../evil"}}}),
		"link":                 archiveOf(t, with(fileOf(name, content)), entry{name, "/etc/passwd", tar.TypeSymlink}),
		"hard link":            archiveOf(t, with(fileOf(name, content)), entry{name, "/etc/passwd", tar.TypeLink}),
		"missing file":         archiveOf(t, with(fileOf(name, content))),
		"unlisted file":        archiveOf(t, with(fileOf(name, content)), good, entry{"build/facts/b", "b", tar.TypeReg}),
		"file twice":           archiveOf(t, with(fileOf(name, content)), good, good),
		"other name":           archiveOf(t, with(fileOf(name, content)), entry{"build/facts/b", content, tar.TypeReg}),
	} {
		dir := t.TempDir()
		file := filepath.Join(t.TempDir(), "b.tar")
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := unpack(t, file, filepath.Join(dir, "cache")); !problem.IsInvalid(err) {
			t.Errorf("%s: got %v, want an error about the input", title, err)
		}
		if got := tree(t, dir); len(got) > 0 {
			t.Errorf("%s: it left %v", title, got)
		}
	}
}

func FuzzBundle(f *testing.F) {
	const name, content = "build/facts/a", "content"
	f.Add(archiveOf(f, Manifest{Format: format, Files: []File{fileOf(name, content)}}, entry{name, content, tar.TypeReg}))
	f.Add([]byte("\x28\xb5\x2f\xfd"))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := read(bytes.NewReader(text))
		if err != nil {
			return
		}
		defer func() {
			if err := a.close(); err != nil {
				t.Error(err)
			}
		}()
		dir := t.TempDir()
		if err := a.extract(dir, func(File) bool { return true }); err != nil {
			return
		}
		for _, file := range a.stored() {
			data, err := os.ReadFile(filepath.Join(dir, file.SHA256))
			if err != nil || digest(data) != "sha256:"+file.SHA256 {
				t.Errorf("%s: %v", fmt.Sprintf("%+v", file), err)
			}
		}
	})
}
