package replace

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/artifact/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/base/steps"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
	"github.com/pmk-sched/pmk-sched/versions"
)

const (
	kubeadmManifest = `# a note that has to stay
apiVersion: v1
kind: Pod
metadata: {name: kube-scheduler, namespace: kube-system}
spec:
  hostNetwork: true
  containers:
  - name: kube-scheduler
    image: registry.example.com/kube-scheduler:v1.24.3
    command:
    - kube-scheduler
    - --kubeconfig=/etc/kubernetes/scheduler.conf
    volumeMounts:
    - {name: kubeconfig, mountPath: /etc/kubernetes/scheduler.conf, readOnly: true}
  volumes:
  - name: kubeconfig
    hostPath: {path: /etc/kubernetes/scheduler.conf, type: FileOrCreate}
`
	pmkManifest = `apiVersion: v1
kind: Pod
metadata: {name: k8s-master, namespace: kube-system}
spec:
  hostNetwork: true
  containers:
  - name: kube-apiserver
    image: registry.example.com/kube-apiserver:v1.24.3
  - name: kube-scheduler
    image: registry.example.com/kube-scheduler:v1.24.3
    command:
    - kube-scheduler
    - --kubeconfig=/srv/kubernetes/kubeconfigs/kube-scheduler.yaml
    volumeMounts:
    - {name: srv, mountPath: /srv/kubernetes, readOnly: true}
  volumes:
  - name: srv
    hostPath: {path: /etc/pf9/kube.d}
`
	pmkSettings = "export ROLE=master\nexport SCHEDULER_FLAGS=\"--feature-gates=\"\n"
)

// testNode simulates a control-plane node: its files are in a directory. It is also the transport
// of a client whose API server shows the pod that a kubelet would run from the current manifest.
type testNode struct {
	root     string
	layout   inspect.Layout
	original string
	// bad is the manifest whose scheduler ends when it starts. A test changes it while the API server
	// answers.
	bad atomic.Value
	// verifyError is the result of Deps.Verify.
	verifyError error
	// onStep is called before each step, and may be nil.
	onStep   func(name string)
	warnings []string
	deleted  int
}

// newTestNode returns a node with the default scheduler of a layout.
func newTestNode(t *testing.T, layout string) *testNode {
	t.Helper()
	l, ok := inspect.LayoutNamed(layout)
	if !ok {
		t.Fatalf("no layout %q", layout)
	}
	n := &testNode{root: t.TempDir(), layout: l, original: kubeadmManifest}
	if l.EnvFile != "" {
		n.original = pmkManifest
		n.write(t, l.EnvFile, pmkSettings)
		n.write(t, filepath.Join(l.ConfigDir, "placeholder"), "")
	}
	n.write(t, l.Manifest, n.original)
	n.write(t, l.Kubeconfig, "kind: Config\n")
	n.write(t, "/program", "a kube-scheduler")
	return n
}

// path returns the path of a node's file for this process.
func (n *testNode) path(file string) string { return filepath.Join(n.root, file) }

func (n *testNode) write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(n.path(file)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(n.path(file), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (n *testNode) read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(n.path(file))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// crashing makes the scheduler of the current manifest end when it starts.
func (n *testNode) crashing(t *testing.T) {
	t.Helper()
	n.bad.Store(n.read(t, n.layout.Manifest))
}

func (n *testNode) deps(t *testing.T) Deps {
	t.Helper()
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: "http://node", Transport: n, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return Deps{
		Files:       staticpod.Files{Resolve: func(file string) (string, error) { return n.path(file), nil }},
		Kube:        kube,
		Applier:     n,
		EnsureImage: func(context.Context, string) error { return nil },
		Binary: func(context.Context, string, []string, string) (configcheck.Binary, error) {
			return configcheck.Binary{Path: n.path("/program")}, nil
		},
		CheckProgram: func(_ context.Context, _ configcheck.Binary, _ string, c deploy.ProgramCheck) error {
			_, err := c.Compare("Kubernetes v1.24.3", nil, "")
			return err
		},
		Verify: func(context.Context, *Plan, bool) error { return n.verifyError },
		Holder: "a test", Now: time.Now, Warn: func(text string) { n.warnings = append(n.warnings, text) },
		Note: func(string) {},
		OnStep: func(name string) func(error) {
			if n.onStep != nil {
				n.onStep(name)
			}
			return nil
		},
		Log: zap.NewNop(),
	}
}

func (n *testNode) info() *inspect.Info {
	return &inspect.Info{
		Layout: n.layout.Name, Release: versions.Release{Major: 1, Minor: 24, Patch: 3},
		ControlPlane: inspect.ControlPlane{Nodes: []inspect.ControlPlaneNode{{Name: "n1", KubeletVersion: "v1.24.3"}}},
	}
}

// asks returns options for a request with an image and a preset; each may be empty.
func asks(image, preset string) Options {
	o := Options{Image: image}
	o.Request.Spec.Image.Reference, o.Request.Spec.Configuration.Preset = image, preset
	return o
}

// run replaces the default scheduler.
func (n *testNode) run(t *testing.T, o Options) (*Outcome, error) {
	t.Helper()
	return Run(t.Context(), n.deps(t), n.info(), o)
}

// kill replaces the default scheduler up to the end of a step. Neither an undo nor the end of the
// run follows. Only the lock is released, as the kernel does it.
func (n *testNode) kill(t *testing.T, o Options, step string) {
	t.Helper()
	o.Timeout, o.StableFor = DefaultTimeout, DefaultStableFor
	r := &replaceRun{Deps: n.deps(t), o: o, info: n.info()}
	killAfter(t, r.steps(), step, func() error { return r.unlock() })
	time.Sleep(time.Second) // backups are named by time
}

// killAfter does the steps up to the end of the named one, and releases the lock that they took.
func killAfter(t *testing.T, all []steps.Step, step string, unlock func() error) {
	t.Helper()
	for _, s := range all {
		if err := s.Do(t.Context()); err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		if s.Name == step {
			break
		}
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
}

// state are the files that a failed run must not change.
type state struct{ Manifest, Env, Configurations string }

func (n *testNode) state(t *testing.T) state {
	t.Helper()
	s := state{Manifest: n.read(t, n.layout.Manifest)}
	if n.layout.EnvFile != "" {
		s.Env = n.read(t, n.layout.EnvFile)
	}
	found, err := filepath.Glob(n.path(filepath.Join(n.layout.ConfigDir, configStem+"*")))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range found {
		s.Configurations += filepath.Base(file) + "\n"
	}
	return s
}

// openBackups returns the states of the backups that are not closed, the newest first.
func (n *testNode) openBackups(t *testing.T) []staticpod.State {
	t.Helper()
	list, err := staticpod.Backups(n.deps(t).Files)
	if err != nil {
		t.Fatal(err)
	}
	var open []staticpod.State
	for _, b := range list {
		if b.State == staticpod.Started || b.State == staticpod.Replaced {
			open = append(open, b.State)
		}
	}
	return open
}

// leftStaged returns the files that were staged and not removed.
func (n *testNode) leftStaged(t *testing.T) []string {
	t.Helper()
	var left []string
	for _, file := range []string{n.layout.Manifest, n.layout.EnvFile} {
		for _, dir := range []string{filepath.Dir(file), filepath.Dir(filepath.Dir(file))} {
			found, err := filepath.Glob(n.path(filepath.Join(dir, ".pmk-sched-manifest-*")))
			if err != nil {
				t.Fatal(err)
			}
			left = append(left, found...)
		}
	}
	return left
}

func (n *testNode) Apply(context.Context, []*unstructured.Unstructured) (apply.ChangeSet, error) {
	return apply.ChangeSet{}, nil
}

func (n *testNode) Delete(context.Context, []*unstructured.Unstructured) (apply.ChangeSet, error) {
	n.deleted++
	return apply.ChangeSet{}, nil
}
