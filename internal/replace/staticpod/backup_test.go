package staticpod

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// filesBelow are the files of a node whose root is a directory.
func filesBelow(root string) Files {
	return Files{Resolve: func(path string) (string, error) { return filepath.Join(root, path), nil }}
}

// newBackup writes a backup of two files below a directory, and returns it as it is read.
func newBackup(t *testing.T) (*Backup, Files) {
	t.Helper()
	root := t.TempDir()
	files := filesBelow(root)
	file := func(text string) *File {
		return &File{Data: []byte(text), Mode: 0o600, UID: os.Getuid(), GID: os.Getgid()}
	}
	b := &Backup{Files: []Saved{{Path: "/manifests/pod.yaml"}, {Path: "/etc/env"}}}
	content := Content{
		Original: []*File{file("original pod"), file("original env")},
		Previous: []*File{file("previous pod"), file("previous env")},
		Written:  [][]byte{[]byte("written pod"), []byte("written env")},
	}
	if err := b.Create(files, time.Now(), content); err != nil {
		t.Fatal(err)
	}
	list, err := Backups(files)
	if err != nil || len(list) != 1 {
		t.Fatalf("got %v, %v", list, err)
	}
	return list[0], files
}

func TestCopiesOfABackupAreLoaded(t *testing.T) {
	b, _ := newBackup(t)
	for _, copy := range []string{OriginalCopy, PreviousCopy, WrittenCopy} {
		got, err := b.Load(b.Manifest(), copy)
		if err != nil || string(got.Data) != copy+" pod" || got.Mode != 0o600 {
			t.Errorf("%s: got %v, %v", copy, got, err)
		}
	}
}

// restore writes a copy as root: one whose hash differs from the journal is refused.
func TestADamagedCopyOfABackupIsRefused(t *testing.T) {
	for name, damage := range map[string]func(dir string) error{
		"other content": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, OriginalCopy, "pod.yaml"), []byte("kind: Pod"), 0o600)
		},
		"truncated": func(dir string) error { return os.Truncate(filepath.Join(dir, OriginalCopy, "pod.yaml"), 0) },
		"another file of the backup": func(dir string) error {
			return os.Rename(filepath.Join(dir, OriginalCopy, "env"), filepath.Join(dir, OriginalCopy, "pod.yaml"))
		},
		"another copy of the file": func(dir string) error {
			return os.Rename(filepath.Join(dir, WrittenCopy, "pod.yaml"), filepath.Join(dir, OriginalCopy, "pod.yaml"))
		},
	} {
		b, _ := newBackup(t)
		if err := damage(b.dir); err != nil {
			t.Fatal(err)
		}
		if got, err := b.Load(b.Manifest(), OriginalCopy); err == nil || !strings.Contains(err.Error(),
			"its hash differs from the journal") || !strings.Contains(err.Error(), b.Dir()+"/original/pod.yaml") {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
	b, _ := newBackup(t)
	if err := os.Remove(filepath.Join(b.dir, OriginalCopy, "pod.yaml")); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Load(b.Manifest(), OriginalCopy); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("removed: got %v, %v", got, err)
	}
}

func TestAHostileJournalIsRefused(t *testing.T) {
	for journal, want := range map[string]string{
		"{":           "unexpected end",
		"[]":          "cannot unmarshal array",
		`{}`:          "it lists no file",
		`{"files":0}`: "cannot unmarshal number",
		`{"files":[{"path":"/manifests/pod.yaml"}]}`:                              `the name "" of a file`,
		`{"files":[{"name":"../x","path":"/manifests/pod.yaml"}]}`:                `the name "../x" of a file`,
		`{"files":[{"name":"..","path":"/manifests/pod.yaml"}]}`:                  `the name ".." of a file`,
		`{"files":[{"name":"/etc/shadow","path":"/manifests/pod.yaml"}]}`:         `the name "/etc/shadow" of a file`,
		`{"files":[{"name":"pod.yaml"},{"name":"original/../../../etc/shadow"}]}`: `etc/shadow" of a file`,
	} {
		b, files := newBackup(t)
		if err := os.WriteFile(filepath.Join(b.dir, "journal.json"), []byte(journal), 0o600); err != nil {
			t.Fatal(err)
		}
		if list, err := Backups(files); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "read journal of backup "+b.Dir()) {
			t.Errorf("%s: got %v, %v, want %q", journal, list, err, want)
		}
	}
}

// Without a kubelet in sight, such as from a container with processes of its own, nobody knows
// which inodes it watches.
func TestLinksThatTheKubeletMayWatchStay(t *testing.T) {
	links := []string{"/held/1", "/held/2", "/held/3", "/held/note"}
	watched := map[uint64]bool{2: true}
	for name, c := range map[string]struct {
		kubelet bool
		want    []string
	}{
		"with a kubelet":    {true, []string{"/held/1", "/held/3"}},
		"without a kubelet": {false, []string{"/held/1"}},
	} {
		if got := unneeded(links, 1, watched, c.kubelet); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
