//go:build linux && (cases || faults)

package hostile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const (
	// longest is how long a command may take, with the time that it takes to undo.
	longest = 90 * time.Second
	// maxMemory of a command in MiB.
	maxMemory = 512
)

// fixture is a hostile cluster and the machine of a user who runs commands against it.
type fixture struct {
	*machine
	cluster    *proxy
	schedulers []scheduler
	config     string
	// collecting stops the garbage collector.
	collecting func()
}

// newFixture fills the cluster, in which preflight finds no node.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	server.Clear(t)
	t.Cleanup(func() { server.Clear(t) })
	f := &fixture{machine: newMachine(t), collecting: server.CollectGarbage(t, namespace)}
	f.cluster = newProxy(t, f.canaries)
	f.schedulers = schedulers(t, f.machine)
	f.write(t, "pod.yaml", pod)
	f.write(t, "scenario.yaml", scenario)
	f.write(t, "providers.json", `{"providers":[{"name":"mine","execConfig":{"command":"/bin/false",`+
		`"apiVersion":"client.authentication.k8s.io/v1"}}]}`)
	for _, s := range f.schedulers {
		f.write(t, s.name+".yaml", fmt.Sprintf(schedulerFile, s.name))
	}
	f.config = f.write(t, ".kube/config", f.cluster.kubeconfig())
	f.before = f.files(t)
	fill(t, f.machine, f.cluster)
	for i := range f.schedulers {
		f.schedulers[i].put(t, f.machine)
	}
	return f
}

// works makes the cluster run what is deployed.
func (f *fixture) works(t *testing.T) {
	t.Helper()
	f.collecting()
	server.Play(t, namespace, func(string) apiserver.Behavior { return apiserver.Works })
}

const schedulerFile = `apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
metadata: {name: %s}
spec:
  image: {reference: "localhost/s:v1"}
  credentials: serviceaccount
`

const pod = `apiVersion: v1
kind: Pod
metadata: {name: added}
spec: {containers: [{name: c, image: "localhost/c:v1"}]}
`

const scenario = `apiVersion: pmk-sched.io/v1alpha1
kind: Scenario
steps:
- {scenario: drain, nodes: [node-1]}
`

// goCaches are the variables of the go command of the user who runs the tests.
func goCaches(t *testing.T) []string {
	t.Helper()
	names := []string{"GOCACHE", "GOMODCACHE", "GOFLAGS", "GOTOOLCHAIN", "GOPROXY", "GOSUMDB", "CGO_ENABLED"}
	text, err := exec.CommandContext(t.Context(), "go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	var env []string
	for i, value := range strings.Split(strings.TrimRight(string(text), "\n"), "\n") {
		env = append(env, names[i]+"="+value)
	}
	return env
}

// calls returns the command lines of a command for the schedulers of those names.
func (f *fixture) calls(t *testing.T, name string, names ...string) (calls [][]string) {
	t.Helper()
	for _, line := range commands()[name].lines {
		of := names
		if !strings.Contains(line, "NAME") {
			of = names[:1]
		}
		for _, scheduler := range of {
			text := strings.NewReplacer("NAME", scheduler, "DIR", t.TempDir(), "HOME", f.home).Replace(line)
			calls = append(calls, append(strings.Fields(name), strings.Fields(text)...))
		}
	}
	return calls
}

// try runs a command, and reports each way in which the cluster harmed the user.
func (f *fixture) try(t *testing.T, c command, args []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(run.Context(t), longest)
	defer cancel()
	args = append([]string{"--request-timeout", "2s"}, args...)
	cmd := exec.CommandContext(ctx, run.Program(t), args...)
	cmd.Env = append(f.environ(t), "PMK_SCHED_KUBECONFIG="+f.config, "PMK_SCHED_NODE_ROOT=none")
	cmd.Dir = f.tmp
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &stdout, &stderr, time.Second
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if c.ends > 0 {
		timer := time.AfterFunc(c.ends, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
		defer timer.Stop()
	}
	ended := make(chan struct{})
	peak := make(chan float64, 1)
	go func() { peak <- watchMemory(cmd.Process.Pid, ended) }()
	err := cmd.Wait()
	close(ended)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	var harms []string
	if code := cmd.ProcessState.ExitCode(); code < 0 || code > 3 {
		harms = append(harms, fmt.Sprintf("exit status %d after %s: %v", code, time.Since(began).Round(time.Second), err))
	}
	// The usage counts the programs that the command ran too, the observed peak only its own memory.
	if usage := float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) / 1024; usage > maxMemory {
		if seen := <-peak; !c.compiles || seen > maxMemory {
			harms = append(harms, fmt.Sprintf("%.0f MiB of memory (%.0f observed)", usage, seen))
		}
	}
	output := stdout.String() + stderr.String()
	if harms = append(harms, f.harms(t, c, output)...); len(harms) > 0 {
		t.Errorf("pmk-sched %s\n  %s\n%.3000s", strings.Join(args, " "), strings.Join(harms, "\n  "), output)
	}
	t.Logf("%.1fs %s: exit status %d: %.200q", time.Since(began).Seconds(), strings.Join(args, " "),
		cmd.ProcessState.ExitCode(), strings.TrimSpace(output))
}

// watchMemory returns the largest resident memory of a process in MiB until it ends.
func watchMemory(pid int, ended <-chan struct{}) (peak float64) {
	for {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // a process that has ended has none
		if _, rest, found := strings.Cut(string(text), "VmHWM:"); found {
			var kilobytes float64
			if _, err := fmt.Sscan(rest, &kilobytes); err == nil {
				peak = max(peak, kilobytes/1024)
			}
			if peak > 4*maxMemory { // the machine is shared
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		select {
		case <-ended:
			return peak
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// harms returns what happened to the user and his cluster.
func (f *fixture) harms(t *testing.T, c command, output string) (harms []string) {
	t.Helper()
	leaks, _ := f.cluster.take()
	harms = append(harms, leaks...)
	for _, contact := range f.take() {
		if c.reads && strings.HasPrefix(contact, "registry: GET ") {
			continue
		}
		harms = append(harms, "a request that the command does not name: "+contact)
	}
	for _, name := range f.canaries.find([]byte(output)) {
		harms = append(harms, name+" is in the output")
	}
	for _, r := range output {
		if !c.passes && (unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)) {
			harms = append(harms, fmt.Sprintf("the output has the character %U", r))
			break
		}
	}
	if _, err := os.Stat(f.executed); err == nil {
		harms = append(harms, "code of the cluster was executed")
		_ = os.Remove(f.executed)
	}
	if files := f.files(t); !maps.Equal(files, f.before) {
		harms = append(harms, fmt.Sprintf("the files of the user changed: %v", slices.Sorted(maps.Keys(files))))
		f.before = files
	}
	return append(harms, escalated(t)...)
}

// escalated reports, and removes, the objects that only revisions of the scheduler escalates have.
func escalated(t *testing.T) (harms []string) {
	t.Helper()
	const name = "escalates-attacker"
	ctx, kube := run.Context(t), server.Client(t)
	for kind, remove := range map[string]func() error{
		"ClusterRoleBinding": func() error {
			return kube.RbacV1().ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{})
		},
		"DaemonSet": func() error {
			return kube.AppsV1().DaemonSets("default").Delete(ctx, name, metav1.DeleteOptions{})
		},
	} {
		if err := remove(); err == nil {
			harms = append(harms, "the "+kind+" of the attacker was created")
		} else if !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	return harms
}

// tryAll runs the commands, with each of the schedulers where a command names one.
func (f *fixture) tryAll(t *testing.T, compiles bool, names ...string) {
	all := commands()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c := all[name]
		if c.compiles != compiles {
			continue
		}
		t.Run(name, func(t *testing.T) {
			for _, args := range f.calls(t, name, names...) {
				f.try(t, c, args)
				if c.changes {
					f.restore(t, args)
				}
			}
		})
	}
}

// restore writes the revisions of the scheduler again that a command line names.
func (f *fixture) restore(t *testing.T, args []string) {
	t.Helper()
	for i := range f.schedulers {
		if slices.Contains(args, f.schedulers[i].name) {
			f.schedulers[i].put(t, f.machine)
		}
	}
}

// attacked runs commands while the API server attacks, once for each attack.
func (f *fixture) attacked(t *testing.T, commands func(t *testing.T)) {
	all := attacks(f.elsewhere)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			f.cluster.set(all[name])
			defer f.cluster.set(nil)
			commands(t)
		})
	}
}
