//go:build linux && faults

package lifecycle

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/programs"
	"github.com/pmk-sched/pmk-sched/internal/lab"
)

func TestFaultLabDownAfterUpWasKilledLeavesNothing(t *testing.T) {
	for _, p := range []killPoint{
		{"before the network", "make namespaces and network", begun, 0},
		{"with a link", "make namespaces and network", func(l *lab.Lab) string { return "/sys/class/net/" + l.Link() }, 0},
		{"before the daemons", "start etcd and containerd", begun, 0},
		{"while images are loaded", "load images", inRoot("run/containerd/containerd.sock"), 0},
		whileTheAPIServerStarts,
		{"while the node registers", "register node", begun, 0},
		{"while workers are added", "add 2 workers", begun, 0},
		{"while some nodes have namespaces", "make namespaces and network",
			func(l *lab.Lab) string { return filepath.Join(l.Dir(), "cp2/pid/holder") }, 3},
		{"while kubeadm creates a cluster", "create the cluster", inRoot("var/log/pods/*/*"), 3},
		{"while a node joins a cluster", "join node",
			func(l *lab.Lab) string { return filepath.Join(l.Dir(), "cp2/root/var/log/pods/*/*") }, 3},
	} {
		t.Run(p.name, p.leavesNothing)
	}
}

// broken are the programs of a release, one of them replaced.
type broken struct {
	t        *testing.T
	cacheDir string
	program  string
	script   string
}

func (b broken) Find(ctx context.Context, r programs.Request) (map[string]programs.Program, error) {
	finder := &programs.Finder{
		Environment: build.Environment{CacheDir: b.cacheDir, Env: os.Environ()}, From: programs.Build,
	}
	found, err := finder.Find(ctx, r)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(b.t.TempDir(), b.program)
	found[b.program] = programs.Program{Name: b.program, Path: path}
	return found, os.WriteFile(path, []byte(b.script), 0o755)
}

// untilSeen is a context that ends as soon as one of the files that match a pattern holds a text.
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

func TestFaultLabUpThatFailsShowsTheLogAndLeavesNothing(t *testing.T) {
	for program, says := range map[string]string{
		"kubelet":        "kubelet exited",
		"kube-apiserver": "kube-apiserver",
	} {
		t.Run(program, func(t *testing.T) {
			m := watchMachine(t)
			stateDir, cacheDir := directories(t)
			o := options(t, stateDir, cacheDir, "broken")
			o.Programs = broken{t, cacheDir, program, "#!/bin/sh\necho this " + program + " is broken\nexit 3\n"}
			// lab up notices a kubelet that ends; the kubelet restarts a static pod that ends until the time
			// is up.
			ctx := newUntilSeen(t, filepath.Join(stateDir, o.Name, "cp1/root/var/log/pods/*", program, "*.log"), "is broken")
			_, err := lab.Up(ctx, o)
			if err == nil || !strings.Contains(err.Error(), says) ||
				!strings.Contains(err.Error(), "this "+program+" is broken") {
				t.Errorf("the error does not show why: %v", err)
			}
			m.unchanged(t)
		})
	}
}

func begun(*lab.Lab) string { return "/" }
