package install

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
)

// master is a lab's control-plane node, seen from inside.
type master struct {
	name, layout string
}

// Tests run in parallel, each on a master that it has for itself. The labs of a layout wait in a channel; each is brought up when
// it is first lent, and all are taken down at the end of the run.
var (
	idle       = map[string]chan master{"pmk": labsOf("pmk", 2), "kubeadm": labsOf("kubeadm", 1)}
	up, images sync.Map
)

func labsOf(layout string, count int) chan master {
	labs := make(chan master, count)
	for i := range count {
		labs <- master{name: fmt.Sprintf("e2e-%s-%d", layout, i+1), layout: layout}
	}
	return labs
}

// lend gives the test a master of the given layout until it ends; tests that wait for one run in parallel.
func lend(t *testing.T, layout string) master {
	t.Helper()
	t.Parallel()
	m := <-idle[layout]
	t.Cleanup(func() { idle[layout] <- m })
	if _, running := up.LoadOrStore(m.name, true); !running {
		pmkSched(t, "lab", "up", "--name", m.name, "--branch", branch, "--layout", layout).ok(t)
	}
	return m
}

// takeDown takes down the labs of a folder, whoever brought them up.
func takeDown(dir string) {
	labs, err := os.ReadDir(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	for _, l := range labs {
		down := exec.Command(program, "lab", "down", "--name", l.Name())
		down.Stderr = os.Stderr
		if err := down.Run(); err != nil {
			fmt.Fprintf(os.Stderr, "take lab %s down: %v\n", l.Name(), err)
		}
	}
}
