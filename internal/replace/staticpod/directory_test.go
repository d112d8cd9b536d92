package staticpod

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// A kubelet ignores what follows the first document.
func TestEmptyDocumentsAtTheEndAreAccepted(t *testing.T) {
	want := apply(t, kubeadmStyle, wholeChange())
	for _, end := range []string{"---\n", "---", "...\n", "--- # none\n", "---\n\n---\n", "---\nnull\n", "...\n---\n"} {
		if got := apply(t, kubeadmStyle+end, wholeChange()); got != want+end {
			t.Errorf("%q: got\n%s", end, got)
		}
	}
	windows := func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }
	if got := apply(t, windows(kubeadmStyle+"---\n"), wholeChange()); got != windows(want+"---\n") {
		t.Errorf("CRLF: got\n%s", got)
	}
}

func TestTwoFilesForOnePodAreRefused(t *testing.T) {
	const dir = "/etc/kubernetes/manifests"
	otherPod := strings.ReplaceAll(kubeadmStyle, "name: kube-scheduler   # the name", "name: other")
	inDefault := strings.ReplaceAll(kubeadmStyle, "  namespace: kube-system\n", "")
	for name, c := range map[string]struct {
		file, text string
		same       bool
	}{
		"backup":            {"kube-scheduler.yaml.bak", kubeadmStyle, true},
		"backup of editors": {"kube-scheduler.yaml~", strings.ReplaceAll(kubeadmStyle, "v1.24.3", "v1.23.5"), true},
		"unknown fields":    {"old", kubeadmStyle + "unknown: 1\n", true},
		"first document":    {"all.yaml", kubeadmStyle + "---\nkind: Pod\n", true},
		"JSON": {"a.json", `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "kube-scheduler", "namespace": ` +
			`"kube-system"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}`, true},
		"hidden":            {".kube-scheduler.yaml.swp", kubeadmStyle, false},
		"directory":         {"old/kube-scheduler.yaml", kubeadmStyle, false},
		"another pod":       {"other.yaml", otherPod, false},
		"another namespace": {"other.yaml", inDefault, false},
		"second document":   {"other.yaml", otherPod + "---\n" + kubeadmStyle, false},
		"not a pod":         {"list.yaml", "apiVersion: v1\nkind: PodList\nitems: []\n", false},
		"text":              {"README", "a: b: c\n", false},
		"empty":             {"empty", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			files := filesBelow(root)
			for file, text := range map[string]string{"kube-scheduler.yaml": kubeadmStyle, c.file: c.text} {
				at := filepath.Join(root, dir, file)
				if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink("nowhere", filepath.Join(root, dir, "link")); err != nil {
				t.Fatal(err)
			}
			m, err := Parse(dir+"/kube-scheduler.yaml", []byte(kubeadmStyle))
			if err != nil {
				t.Fatal(err)
			}
			err = m.CheckDirectory(files)
			if !c.same && err != nil || c.same && (!problem.IsInvalid(err) || !strings.Contains(err.Error(), dir+"/"+c.file) ||
				!strings.Contains(strings.Join(problem.Hints(err), " "), "move "+dir+"/"+c.file)) {
				t.Errorf("got %v", err)
			}
		})
	}
}
