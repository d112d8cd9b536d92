package staticpod

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// kubeadmStyle is a manifest with typical manual edits: comments, both kinds of quotes, an
// additional flag.
const kubeadmStyle = `# our scheduler, do not touch
apiVersion: v1
kind: Pod
metadata:
  creationTimestamp: null
  labels:
    component: kube-scheduler
  name: kube-scheduler   # the name
  namespace: kube-system
spec:
  containers:
  - command:
    - kube-scheduler
    # the kubeconfig
    - '--kubeconfig=/etc/kubernetes/scheduler.conf'
    - "--leader-elect=true"
    image: "registry.example.com/kube-scheduler:v1.24.3"  # pinned
    imagePullPolicy: IfNotPresent
    name: kube-scheduler
    volumeMounts:
    - mountPath: /etc/kubernetes/scheduler.conf
      name: kubeconfig
      readOnly: true
  hostNetwork: true
  volumes:
  - hostPath:
      path: /etc/kubernetes/scheduler.conf
      type: FileOrCreate
    name: kubeconfig
status: {}
`

func wholeChange() Change {
	return Change{
		Container: "kube-scheduler", Program: "kube-scheduler", Image: "localhost/ours:v1", RunAsRoot: true,
		UID:    "0123456789abcdef",
		Config: "/etc/kubernetes/pmk-sched/pmk-sched-1.yaml",
		Mount: &Mount{Name: "pmk-sched-config", HostPath: "/etc/kubernetes/pmk-sched",
			Path: "/etc/kubernetes/pmk-sched", Type: corev1.HostPathDirectory},
		Annotations: []Annotation{{AnnotationReplacement, "1e5"}, {AnnotationConfig, "00"}},
	}
}

func apply(t *testing.T, manifest string, c Change) string {
	t.Helper()
	m, err := Parse("/m.yaml", []byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	out, err := m.Apply(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestApplyChangesNothingElse(t *testing.T) {
	want := `# our scheduler, do not touch
apiVersion: v1
kind: Pod
metadata:
  uid: "0123456789abcdef"
  annotations:
    pmk-sched.io/replacement: "1e5"
    pmk-sched.io/config-hash: "00"
  creationTimestamp: null
  labels:
    component: kube-scheduler
  name: kube-scheduler   # the name
  namespace: kube-system
spec:
  containers:
  - securityContext:
      runAsUser: 0
    command:
    - kube-scheduler
    # the kubeconfig
    - '--config=/etc/kubernetes/pmk-sched/pmk-sched-1.yaml'
    - '--kubeconfig=/etc/kubernetes/scheduler.conf'
    - "--leader-elect=true"
    image: "localhost/ours:v1"  # pinned
    imagePullPolicy: IfNotPresent
    name: kube-scheduler
    volumeMounts:
    - mountPath: /etc/kubernetes/pmk-sched
      name: pmk-sched-config
      readOnly: true
    - mountPath: /etc/kubernetes/scheduler.conf
      name: kubeconfig
      readOnly: true
  hostNetwork: true
  volumes:
  - hostPath:
      path: /etc/kubernetes/pmk-sched
      type: Directory
    name: pmk-sched-config
  - hostPath:
      path: /etc/kubernetes/scheduler.conf
      type: FileOrCreate
    name: kubeconfig
status: {}
`
	if diff := cmp.Diff(want, apply(t, kubeadmStyle, wholeChange())); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestApplyIsIdempotent(t *testing.T) {
	once := apply(t, kubeadmStyle, wholeChange())
	if diff := cmp.Diff(once, apply(t, once, wholeChange())); diff != "" {
		t.Errorf("(-once +twice)\n%s", diff)
	}
	other := wholeChange()
	other.Image, other.Config, other.Annotations = "localhost/other:v2", "/etc/kubernetes/pmk-sched/pmk-sched-2.yaml",
		[]Annotation{{AnnotationReplacement, "2"}, {AnnotationConfig, "01"}}
	if diff := cmp.Diff(apply(t, kubeadmStyle, other), apply(t, once, other)); diff != "" {
		t.Errorf("a second change does not replace the first (-want +got)\n%s", diff)
	}
}

// pmkStyle is PMK's own manifest (platform9/nodelet), shortened: indented lists, everything quoted,
// the scheduler one of several containers.
const pmkStyle = `---
apiVersion: "v1"
kind: "Pod"
metadata:
  name: "k8s-master"
  namespace: "kube-system"
spec:
  hostNetwork: true
  containers:
    - name: "kube-apiserver"
      image: "k8s/kube-apiserver:v1.24.3"
      command:
        - "kube-apiserver"
        - "--http2-max-streams-per-connection=1000" # See: PMK-2969
    - name: "kube-scheduler"
      image: "k8s/kube-scheduler:v1.24.3"
      command:
        - "kube-scheduler"
        - "--config=/srv/kubernetes/configs/kube-scheduler.yaml"
        - "--v=2"
      volumeMounts:
        - name: "configs"
          mountPath: "/srv/kubernetes/configs"
          readOnly: true
  volumes:
    - name: "configs"
      hostPath:
        path: "/etc/pf9/kube.d/configs"
`

func TestApplyChangesOneContainerOfSeveral(t *testing.T) {
	got := apply(t, pmkStyle, Change{
		Container: "kube-scheduler", Program: "kube-scheduler", Image: "localhost/ours:v1",
		Config: "/srv/kubernetes/configs/ours.yaml", PullIfNotPresent: true,
	})
	want := strings.NewReplacer(
		`image: "k8s/kube-scheduler:v1.24.3"`, `image: "localhost/ours:v1"`,
		`--config=/srv/kubernetes/configs/kube-scheduler.yaml`, `--config=/srv/kubernetes/configs/ours.yaml`,
		`    - name: "kube-scheduler"`, "    - imagePullPolicy: IfNotPresent\n      name: \"kube-scheduler\"",
	).Replace(pmkStyle)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestApplySupportsOrRefusesEveryYAMLStyle(t *testing.T) {
	replace := func(from, to string) string {
		if !strings.Contains(kubeadmStyle, from) {
			t.Fatalf("no %q in the manifest", from)
		}
		return strings.Replace(kubeadmStyle, from, to, 1)
	}
	for name, c := range map[string]struct {
		manifest, refused string // refused: part of the error, or empty
	}{
		"CRLF":            {manifest: strings.ReplaceAll(kubeadmStyle, "\n", "\r\n")},
		"mixed line ends": {manifest: replace("kind: Pod\n", "kind: Pod\r\n"), refused: "CRLF"},
		"JSON": {
			manifest: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"s"},"spec":{"containers":[{"name":"kube-scheduler","image":"a/b:c","command":["kube-scheduler","--v=2"]}]}}`},
		"JSON with empty lists": {
			manifest: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"s","annotations":{}},"spec":{"volumes":[],"containers":[{"name":"kube-scheduler","image":"a/b:c","volumeMounts":[],"command":["kube-scheduler"]}]}}`},
		"flow list": {
			manifest: replace(
				"- command:\n    - kube-scheduler\n    # the kubeconfig\n    - '--kubeconfig=/etc/kubernetes/scheduler.conf'\n   "+
					" - \"--leader-elect=true\"\n", "- command: [kube-scheduler, '--leader-elect=true']\n")},
		"arguments": {manifest: replace("    # the kubeconfig\n", "    args:\n")},
		"only the program": {manifest: replace(
			"    # the kubeconfig\n    - '--kubeconfig=/etc/kubernetes/scheduler.conf'\n    - \"--leader-elect=true\"\n", "")},
		"log runner in the command": {manifest: replace("    - kube-scheduler\n",
			"    - /go-runner\n    - --also-stdout\n    - /usr/local/bin/kube-scheduler\n")},
		"log runner and program in both": {manifest: replace("    - kube-scheduler\n    # the kubeconfig\n",
			"    - /go-runner\n    args:\n    - --log-file\n    - /var/log/kube-scheduler\n    - "+
				"/usr/local/bin/kube-scheduler\n")},
		"log runner of something else": {manifest: replace("    - kube-scheduler\n",
			"    - /go-runner\n    - --log-file\n    - /var/log/kube-scheduler\n    - /bin/sh\n"), refused: "/go-runner"},
		"log runner alone": {manifest: replace("    - kube-scheduler\n", "    - /go-runner\n"),
			refused: "/go-runner"},
		"no volumes": {
			manifest: strings.Replace(
				replace(
					"  volumes:\n  - hostPath:\n      path: /etc/kubernetes/scheduler.conf\n      type: FileOrCreate\n    name: "+
						"kubeconfig\n", ""),
				"    volumeMounts:\n    - mountPath: /etc/kubernetes/scheduler.conf\n      name: kubeconfig\n      readOnly: "+
					"true\n", "", 1)},
		"non-ASCII letters": {manifest: replace("  - command:",
			"  - env: [{name: WÖRT, value: ü}]\n    command:")},
		"runs as a user": {manifest: replace("  hostNetwork: true",
			"  securityContext: {runAsUser: 10259}\n  hostNetwork: true")},
		"anchor": {manifest: replace("image: \"", "image: &i \""), refused: "anchor"},
		"alias": {manifest: replace("component: kube-scheduler",
			"component: &n kube-scheduler\n    other: *n"), refused: "anchor"},
		"tag":             {manifest: replace("image: \"", "image: !!str \""), refused: "tag"},
		"tab":             {manifest: replace("  containers:", "\tcontainers:"), refused: "token"},
		"two documents":   {manifest: kubeadmStyle + "---\nkind: Pod\n", refused: "second document"},
		"later documents": {manifest: kubeadmStyle + "---\n---\na: b\n", refused: "second document"},
		"unknown field": {manifest: replace("hostNetwork: true", "hostNetwrok: true"),
			refused: "hostNetwrok"},
		"field twice": {manifest: replace("hostNetwork: true", "hostNetwork: true\n  hostNetwork: true"),
			refused: "hostNetwork"},
		"byte order mark": {manifest: "\ufeff" + kubeadmStyle, refused: "byte order mark"},
		"no pod":          {manifest: replace("kind: Pod", "kind: Node"), refused: "Pod"},
		"shell": {manifest: replace("    - kube-scheduler\n", "    - /bin/sh\n"),
			refused: "/bin/sh"},
		"flag and value in two words": {manifest: replace("    - \"--leader-elect=true\"", "    - --config\n    - /x"),
			refused: "separate words"},
		"image on two lines": {
			manifest: replace("image: \"registry.example.com/kube-scheduler:v1.24.3\"  # pinned",
				"image:\n      >-\n      registry.example.com/x:y"), refused: "more than one line"},
		"another container's name": {manifest: replace("    name: kube-scheduler\n    volumeMounts",
			"    name: scheduler\n    volumeMounts"), refused: "no container"},
		"empty": {manifest: "", refused: "Pod"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Parse("/m.yaml", []byte(c.manifest))
			var out []byte
			if err == nil {
				out, err = m.Apply(wholeChange())
			}
			switch {
			case c.refused == "" && err != nil:
				t.Fatal(err)
			case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
				t.Fatalf("want an error with %q, got %v", c.refused, err)
			case c.refused == "":
				if again := apply(t, string(out), wholeChange()); again != string(out) {
					t.Errorf("a second Apply differs:\n%s", cmp.Diff(string(out), again))
				}
			}
		})
	}
}

func TestSwapRefusesEditedManifest(t *testing.T) {
	dir := t.TempDir()
	manifests := filepath.Join(dir, "manifests")
	if err := os.Mkdir(manifests, 0o755); err != nil {
		t.Fatal(err)
	}
	files := filesBelow(dir)
	for _, single := range []bool{false, true} {
		s := Swapper{Files: files, SingleFile: single}
		if err := files.Write("/manifests/pod.yaml",
			&File{Data: []byte("edited"), Mode: 0o640, UID: os.Getuid(), GID: os.Getgid()}); err != nil {
			t.Fatal(err)
		}
		next := &File{Data: []byte("new"), Mode: 0o640, UID: os.Getuid(), GID: os.Getgid()}
		if err := s.Swap("/manifests/pod.yaml", &File{Data: []byte("old")}, next); err == nil {
			t.Fatal("an edit was overwritten")
		}
		if err := s.Swap("/manifests/pod.yaml", &File{Data: []byte("edited")}, next); err != nil {
			t.Fatal(err)
		}
		got, err := files.Read("/manifests/pod.yaml")
		if err != nil || string(got.Data) != "new" || got.Mode != 0o640 {
			t.Errorf("got %v, %v", got, err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*", partPrefix+"*")); len(left) > 0 {
			t.Errorf("temporary files left: %v", left)
		}
		if links, _ := filepath.Glob(filepath.Join(dir, heldDir, "*")); single != (len(links) > 0) {
			t.Errorf("link kept for a manifest in a directory: %v", links)
		}
	}
}

func TestBackupsSkipsDirectoryWithoutJournal(t *testing.T) {
	dir := t.TempDir()
	files := filesBelow(dir)
	if err := os.MkdirAll(filepath.Join(dir, backupsDir, "20260101T000000Z", "original"), 0o700); err != nil {
		t.Fatal(err)
	}
	if b, err := Current(files); err != nil || b != nil {
		t.Errorf("got %v, %v", b, err)
	}
}

func TestApplySetsAnotherFlag(t *testing.T) {
	first := Change{Container: "kube-scheduler", Program: "kube-scheduler", Flag: "policy-configmap", Config: "policy-1"}
	once := apply(t, kubeadmStyle, first)
	want := strings.Replace(kubeadmStyle, "    # the kubeconfig\n",
		"    # the kubeconfig\n    - '--policy-configmap=policy-1'\n", 1)
	if diff := cmp.Diff(want, once); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if again := apply(t, once, first); again != once {
		t.Errorf("setting the flag twice differs:\n%s", cmp.Diff(once, again))
	}
	second := first
	second.Config = "policy-2"
	if got, want := apply(t, once, second), strings.Replace(once, "policy-1", "policy-2", 1); got != want {
		t.Errorf("(-want +got)\n%s", cmp.Diff(want, got))
	}
	both := apply(t, once, wholeChange())
	if !strings.Contains(both, "'--policy-configmap=policy-1'\n") ||
		!strings.Contains(both, "'--config=/etc/kubernetes/pmk-sched/pmk-sched-1.yaml'\n") {
		t.Errorf("one of the flags is missing:\n%s", both)
	}
}
