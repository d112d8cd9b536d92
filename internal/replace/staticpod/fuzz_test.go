package staticpod

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzManifest searches manifests that crash the parser or the editor, or whose change cannot be
// parsed again.
func FuzzManifest(f *testing.F) {
	for _, text := range []string{
		"apiVersion: v1\nkind: Pod\nmetadata: {name: kube-scheduler}\nspec:\n  containers:\n  - name: kube-scheduler\n    " +
			"image: a\n    command: [kube-scheduler, --leader-elect=true]\n",
		"apiVersion: v1\nkind: Pod\nmetadata:\n  name: kube-scheduler\nspec:\n  containers:\n  - command:\n    - " +
			"kube-scheduler\n    - --config=/x\n    image: a\n    name: kube-scheduler\n    volumeMounts:\n    - {mountPath: " +
			"/etc, name: e}\n  volumes:\n  - hostPath: {path: /etc}\n    name: e\n",
		`{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"kube-scheduler","image":"a","args":["kube-scheduler"]}]}}`,
		"", "- a", "a: &x [*x]", "apiVersion: v1\r\nkind: Pod\r\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Parse("/etc/kubernetes/manifests/kube-scheduler.yaml", text)
		if err != nil {
			return
		}
		changed, err := m.Apply(Change{
			Container: "kube-scheduler", Program: "kube-scheduler", Image: "localhost/x:v1", Config: "/etc/kubernetes/c.yaml",
			RunAsRoot: true,
			Mount: &Mount{Name: "pmk-sched", HostPath: "/etc/kubernetes/pmk-sched",
				Path: "/etc/kubernetes/pmk-sched"}, Annotations: []Annotation{{Name: AnnotationReplacement, Value: "x"}},
		})
		if err != nil {
			return
		}
		again, err := Parse(m.Path, changed)
		if err != nil {
			t.Fatalf("parse the changed manifest: %v\n%s", err, changed)
		}
		if Replacement(changed) != "x" || again.Pod.Name != m.Pod.Name {
			t.Fatalf("the changed manifest is not the replacement of the former one:\n%s", changed)
		}
	})
}

// FuzzJournal searches journals that crash their reader, or that make it read a file outside of the
// backup.
func FuzzJournal(f *testing.F) {
	for _, text := range []string{
		`{"state":"started","files":[{"path":"/etc/a.yaml","name":"a.yaml","original":"x","previous":"x","written":"y"}]}`,
		`{"files":[{"name":"../../outside"}]}`, `{"files":[{"name":".."}]}`, `{"files":[]}`, `{}`, `null`, `[`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		root := t.TempDir()
		files := filesBelow(root)
		outside := []byte("outside")
		dir := filepath.Join(root, backupsDir, "20260101T000000")
		for name, data := range map[string][]byte{filepath.Join(dir, "journal.json"): text,
			filepath.Join(root, "outside"): outside, filepath.Join(root, backupsDir, "outside"): outside} {
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		list, err := Backups(files)
		if err != nil {
			return
		}
		for _, b := range list {
			for i := range b.Files {
				for _, which := range []string{OriginalCopy, PreviousCopy, WrittenCopy} {
					if read, err := b.Load(&b.Files[i], which); err == nil {
						t.Fatalf("a file that is not in the backup was read: %q", read.Data)
					}
				}
			}
			b.readme()
		}
		if b, err := Current(files); err != nil {
			t.Fatalf("got %v, %v", b, err)
		}
	})
}
