package lifecycle

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/versions"
)

// helper, set to a state folder, makes the test binary bring a lab up in it, so that there is a process to kill.
const helper = "PMK_SCHED_LABTEST_UP"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helper); dir != "" {
		os.Exit(bringUp(dir))
	}
	os.Exit(m.Run())
}

// bringUp prints every step when it begins.
func bringUp(stateDir string) int {
	release, err := versions.Parse("v1.24.3")
	if err != nil {
		return 1
	}
	_, err = lab.Up(context.Background(), lab.Options{
		Name: prefix + "killed", Release: release, StateDir: stateDir, CacheDir: os.Getenv("PMK_SCHED_CACHE"), Env: os.Environ(), Nodes: 2,
		OnStep: func(step string) func(error) {
			fmt.Println(step)
			return nil
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("up")
	return 0
}

func TestDownAfterUpWasKilled(t *testing.T) {
	for _, c := range []struct {
		step  string
		after time.Duration
	}{
		{"make namespaces and network", 0},
		{"make namespaces and network", 40 * time.Millisecond},
		{"make namespaces and network", 120 * time.Millisecond},
		{"start etcd and containerd", 0},
		{"load images", 300 * time.Millisecond},
		{"start the API server", 1500 * time.Millisecond},
		{"register node", time.Second},
		{"add 2 workers", 100 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("%s after %s", c.step, c.after), func(t *testing.T) {
			m := watchMachine(t)
			stateDir, cacheDir := folders(t)
			killUp(t, stateDir, cacheDir, c.step, c.after)
			l, err := lab.Get(stateDir, prefix+"killed")
			if errors.Is(err, lab.ErrNotFound) {
				m.unchanged(t) // It was killed before it made anything.
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			m.links[l.Link()] = true
			if _, err := l.Status(t.Context()); err != nil {
				t.Errorf("status of a half-made lab: %v", err)
			}
			if err := lab.Down(t.Context(), stateDir, l.Name(), nil); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(l.Dir()); err == nil {
				t.Error("its folder is still there")
			}
			m.unchanged(t)
		})
	}
}

// killUp starts another process that brings a lab up, and kills it some time after it has begun a step.
func killUp(t *testing.T, stateDir, cacheDir, step string, after time.Duration) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), helper+"="+stateDir, "PMK_SCHED_CACHE="+cacheDir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	reached := false
	for !reached && lines.Scan() {
		reached = strings.HasPrefix(lines.Text(), step)
	}
	if !reached {
		t.Fatalf("it never came to the step %q", step)
	}
	time.Sleep(after)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

func TestUpThatIsCancelledLeavesNothing(t *testing.T) {
	m := watchMachine(t)
	stateDir, cacheDir := folders(t)
	o := options(t, stateDir, cacheDir, "cancelled")
	ctx, cancel := context.WithCancel(t.Context())
	o.OnStep = func(step string) func(error) {
		if strings.HasPrefix(step, "start the API server") {
			cancel()
		}
		return nil
	}
	if _, err := lab.Up(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if labs, err := lab.List(stateDir); err != nil || len(labs) != 0 {
		t.Errorf("labs left: %d, %v", len(labs), err)
	}
	m.unchanged(t)
}

// broken are the programs of a release, one of them replaced.
type broken struct {
	t        *testing.T
	cacheDir string
	program  string
	script   string
}

func (b broken) Kubernetes(ctx context.Context, r versions.Release, names []string) (map[string]string, error) {
	programs, err := lab.Compiled{CacheDir: b.cacheDir, Env: os.Environ()}.Kubernetes(ctx, r, names)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(b.t.TempDir(), b.program)
	programs[b.program] = path
	return programs, os.WriteFile(path, []byte(b.script), 0o755)
}

func (b broken) Module(context.Context, string, string, string, string) (string, error) {
	return "", errors.New("not needed")
}

// untilSeen is a context whose time is up as soon as one of the files that match a pattern holds a text.
type untilSeen struct {
	context.Context
	up chan struct{}
}

func (c untilSeen) Done() <-chan struct{} { return c.up }

func (c untilSeen) Err() error {
	select {
	case <-c.up:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func newUntilSeen(t *testing.T, pattern, text string) context.Context {
	c := untilSeen{t.Context(), make(chan struct{})}
	go func() {
		defer close(c.up)
		for c.Context.Err() == nil {
			files, _ := filepath.Glob(pattern)
			for _, file := range files {
				if data, _ := os.ReadFile(file); strings.Contains(string(data), text) {
					return
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	return c
}

func TestUpThatFailsShowsTheLogAndLeavesNothing(t *testing.T) {
	for program, says := range map[string]string{
		"kubelet":        "kubelet exited",
		"kube-apiserver": "kube-apiserver",
	} {
		t.Run(program, func(t *testing.T) {
			m := watchMachine(t)
			stateDir, cacheDir := folders(t)
			o := options(t, stateDir, cacheDir, "broken")
			o.Programs = broken{t, cacheDir, program, "#!/bin/sh\necho this " + program + " is broken\nexit 3\n"}
			// A kubelet that ends is noticed; a static pod that ends is started again until the time is up.
			ctx := newUntilSeen(t, filepath.Join(stateDir, o.Name, "root/var/log/pods/*", program, "*.log"), "is broken")
			_, err := lab.Up(ctx, o)
			if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "this "+program+" is broken") {
				t.Errorf("the error does not show why: %v", err)
			}
			m.unchanged(t)
		})
	}
}
