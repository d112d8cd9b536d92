// Package replace tests the replacing of the default scheduler, on real masters in labs.
package replace

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/build"
	"github.com/pmk-sched/pmk-sched/internal/image"
	"github.com/pmk-sched/pmk-sched/internal/lab"
)

// Set in TestMain.
var program, work, labs string

func TestMain(m *testing.M) { os.Exit(runAll(m)) }

func runAll(m *testing.M) int {
	var err error
	if work, err = os.MkdirTemp("", "replace-"); err == nil {
		defer os.RemoveAll(work)
		labs, err = os.MkdirTemp("/var/tmp", "replace-labs-")
	}
	if err == nil {
		defer os.RemoveAll(labs)
		err = os.Setenv("PMK_SCHED_LAB_DIR", labs)
	}
	program = filepath.Join(work, "pmk-sched")
	if err == nil {
		var out []byte
		if out, err = exec.Command("go", "build", "-o", program, "../../../cmd/pmk-sched").CombinedOutput(); err != nil {
			err = fmt.Errorf("build pmk-sched: %w: %s", err, out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer takeDown()
	return m.Run()
}

func takeDown() {
	entries, _ := os.ReadDir(labs)
	for _, l := range entries {
		if out, err := exec.Command(program, "lab", "down", "--name", l.Name()).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "take lab %s down: %v: %s\n", l.Name(), err, out)
		}
	}
}

// shape is a layout at a release.
type shape struct{ layout, branch string }

func (s shape) String() string { return s.layout + "-" + s.branch }

// master is the control-plane node of a lab.
type master struct {
	shape
	name string
	// original is the manifest before anything was replaced.
	original []byte
}

// manifest is where the scheduler's static pod is, on the master.
func (s shape) manifest() string {
	if s.layout == lab.LayoutPMK {
		return "/etc/pf9/kube.d/master.yaml"
	}
	return "/etc/kubernetes/manifests/kube-scheduler.yaml"
}

// labsOfShape is how many labs there are of each shape: tests wait more than they work.
const labsOfShape = 2

// Labs of each shape, brought up by the test that needs one first and used by one test at a time.
var (
	mu      sync.Mutex
	masters = map[shape]chan *master{}
)

// lend gives the test the master of a shape for itself.
func lend(t testing.TB, s shape) *master {
	t.Helper()
	if test, ok := t.(*testing.T); ok {
		test.Parallel()
	}
	mu.Lock()
	waiting, known := masters[s]
	if !known {
		waiting = make(chan *master, labsOfShape)
		masters[s] = waiting
		for i := range labsOfShape {
			waiting <- &master{shape: s, name: fmt.Sprintf("replace-%s-%s-%d", s.layout, strings.ReplaceAll(strings.TrimPrefix(s.branch, "v"), ".", "-"), i+1)}
		}
	}
	mu.Unlock()
	m := <-waiting
	t.Cleanup(func() { waiting <- m })
	if m.original != nil {
		m.forget(t)
	} else {
		run(t, exec.CommandContext(patience(t), program, "lab", "up", "--name", m.name, "--branch", s.branch, "--layout", s.layout)).ok(t)
		m.original = m.read(t, s.manifest())
	}
	return m
}

// forget restarts the kubelet: it holds back a container that it has started lately, twice as long each time, and forgets that only when
// it starts itself. A person replaces once; the tests do it again and again.
func (m *master) forget(t testing.TB) {
	t.Helper()
	l, err := lab.Get(labs, m.name)
	if err == nil {
		err = l.RestartNode(patience(t))
	}
	if err != nil {
		t.Fatal(err)
	}
}

type result struct {
	stdout, stderr string
	code           int
}

func (r result) String() string {
	return fmt.Sprintf("exit status %d\n--- stdout\n%s\n--- stderr\n%s", r.code, r.stdout, r.stderr)
}

func (r result) ok(t testing.TB) result {
	t.Helper()
	if r.code != 0 {
		t.Fatalf("%s", r)
	}
	return r
}

func (r result) fails(t testing.TB, code int, texts ...string) {
	t.Helper()
	if r.code != code {
		t.Fatalf("want exit status %d: %s", code, r)
	}
	for _, text := range texts {
		if !strings.Contains(r.stderr+r.stdout, text) {
			t.Errorf("the person is not told %q: %s", text, r)
		}
	}
}

func patience(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 15*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func run(t testing.TB, cmd *exec.Cmd) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run %s: %v", strings.Join(cmd.Args, " "), err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

func (m *master) command(t testing.TB, argv ...string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(patience(t), program, append([]string{"lab", "exec", "--name", m.name, "--"}, argv...)...)
}

func (m *master) exec(t testing.TB, argv ...string) result {
	t.Helper()
	return run(t, m.command(t, argv...))
}

func (m *master) sh(t testing.TB, script string) string {
	t.Helper()
	return m.exec(t, "sh", "-ec", script).ok(t).stdout
}

func (m *master) pmkSched(t testing.TB, args ...string) result {
	t.Helper()
	return m.exec(t, append([]string{program}, args...)...)
}

func (m *master) kubectl(t testing.TB, args ...string) string {
	t.Helper()
	return m.exec(t, append([]string{"kubectl"}, args...)...).ok(t).stdout
}

// at runs a replacement, and calls do as soon as the given step has passed. do may stop or kill the process, whose ID it is given.
func (m *master) at(t testing.TB, step string, do func(pid int), args ...string) result {
	t.Helper()
	cmd := m.command(t, append([]string{program}, args...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stdout, said bytes.Buffer
	cmd.Stdout = &stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, done := bufio.NewScanner(stderr), false
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if !done && strings.HasPrefix(lines.Text(), "✓ "+step+" (") {
			done = true
			do(child(cmd.Process.Pid))
		}
	}
	_ = cmd.Wait() // its status is the result
	if !done {
		t.Fatalf("the step %q did not pass:\n%s", step, said.String())
	}
	return result{stdout.String(), said.String(), cmd.ProcessState.ExitCode()}
}

// child finds the program that a lab exec runs: the last of its line of descendants with our name.
func child(pid int) int {
	found := pid
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range threads {
		children, _ := os.ReadFile(file)
		for text := range strings.FieldsSeq(string(children)) {
			var id int
			if _, err := fmt.Sscan(text, &id); err != nil {
				continue
			}
			below := child(id)
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", below))
			if strings.HasPrefix(string(line), program+"\x00") {
				found = below
			}
		}
	}
	return found
}

func signal(t testing.TB, what syscall.Signal) func(pid int) {
	return func(pid int) {
		if err := syscall.Kill(pid, what); err != nil {
			t.Errorf("signal process %d: %v", pid, err)
		}
	}
}

// read reads a file of the master.
func (m *master) read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(labs, m.name, "root", path))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// isOriginal fails the test unless the manifest is what it was at the beginning and its scheduler works.
func (m *master) isOriginal(t testing.TB) {
	t.Helper()
	if got := m.read(t, m.manifest()); !bytes.Equal(got, m.original) {
		t.Errorf("the manifest is not what it was:\n%s", got)
	}
	left, _ := filepath.Glob(filepath.Join(labs, m.name, "root/etc/*/*/pmk-sched-*.yaml"))
	if more, _ := filepath.Glob(filepath.Join(labs, m.name, "root/etc/pf9/kube.d/configs/pmk-sched-*.yaml")); len(left)+len(more) > 0 {
		t.Errorf("configurations are left: %v %v", left, more)
	}
	m.schedules(t)
}

// schedules fails the test unless the API server answers, the scheduler's pod is ready, and a pod that names no scheduler is bound.
func (m *master) schedules(t testing.TB) {
	t.Helper()
	m.kubectl(t, "get", "--raw", "/readyz")
	manifest := fmt.Sprintf(`---
{apiVersion: v1, kind: Pod, metadata: {name: probe, namespace: default}, spec: {tolerations: [{operator: Exists}], terminationGracePeriodSeconds: 0,
  containers: [{name: main, image: %q}]}}`, lab.PauseImage)
	m.sh(t, "kubectl delete pod probe -n default --ignore-not-found --wait=true >/dev/null; cat <<'END' | kubectl create -f -\n"+manifest+"\nEND")
	eventually(t, "a pod is bound", func() bool {
		return m.exec(t, "kubectl", "get", "pod", "probe", "-n", "default", "-o", "jsonpath={.spec.nodeName}").stdout != ""
	})
}

// apiServer is the container of the API server: it stays the same as long as nobody restarted it.
func (m *master) apiServer(t testing.TB) string {
	t.Helper()
	return m.kubectl(t, "get", "pods", "-n", "kube-system", "-o", `jsonpath={.items[*].status.containerStatuses[?(@.name=="kube-apiserver")].containerID}`)
}

func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Minute)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("gave up waiting: %s", what)
		}
		time.Sleep(300 * time.Millisecond)
	}
}

func decode[T any](t testing.TB, text string) T {
	t.Helper()
	var value T
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, text)
	}
	return value
}

// built remembers the images that a lab has.
var built sync.Map

func (m *master) once(key string) bool {
	_, done := built.LoadOrStore(m.name+" "+key, true)
	return !done
}

// ours builds a scheduler of the lab's release with plugins into the lab.
func (m *master) ours(t testing.TB, plugins ...string) string {
	t.Helper()
	reference := "localhost/ours-" + strings.Join(append(plugins, "plain"), "-") + ":" + m.branch
	if !m.once(reference) {
		return reference
	}
	args := []string{"build", "--branch", m.branch, "--busybox", "/bin/busybox", "--tag", reference, "--load", "containerd"}
	for _, plugin := range plugins {
		args = append(args, "--with", "builtin:"+plugin)
	}
	m.pmkSched(t, args...).ok(t)
	return reference
}

// faulty makes an image whose kube-scheduler goes wrong in that way, and says that it is of version.
func (m *master) faulty(t testing.TB, behaviour, version string) string {
	t.Helper()
	reference := "localhost/" + behaviour + ":" + version
	if !m.once(reference) {
		return reference
	}
	dir := t.TempDir()
	wrapper, archive := filepath.Join(dir, "wrapper"), filepath.Join(dir, "image.tar")
	cmd := exec.Command("go", "build", "-ldflags", "-X main.behaviour="+behaviour+" -X main.version="+version, "-o", wrapper, "./testdata/wrapper")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	run(t, cmd).ok(t)
	files := []image.File{{Path: image.SchedulerPath, Source: wrapper}}
	if behaviour == "crash-later" {
		real := filepath.Join(dir, "real")
		run(t, exec.Command(program, "build", "--branch", m.branch, "--binary", real)).ok(t)
		files = append(files, image.File{Path: "/usr/local/bin/real", Source: real})
	}
	platform := build.Host().String()
	made, err := image.Build(t.Context(), image.Options{
		Base: image.Base{Busybox: "/bin/busybox"}, Platforms: []string{platform}, Files: map[string][]image.File{platform: files}, Entrypoint: []string{image.SchedulerPath},
	})
	if err == nil {
		err = image.WriteArchive(t.Context(), made, reference, archive)
	}
	if err != nil {
		t.Fatal(err)
	}
	m.exec(t, "ctr", "-n", "k8s.io", "images", "import", archive).ok(t)
	return reference
}
