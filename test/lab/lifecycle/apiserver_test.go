//go:build linux

package lifecycle

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/lab"
)

// restartAPIServer moves the static pod with the API server away, waits until it no longer answers, moves the static pod back and
// waits until it is ready. With the layout pmk the controller manager and the default scheduler are in the same pod.
func restartAPIServer(t *testing.T, l *lab.Lab) {
	t.Helper()
	manifest, err := l.StaticPods()
	if err != nil {
		t.Fatal(err)
	}
	if l.Layout() == lab.LayoutKubeadm {
		manifest = filepath.Join(manifest, "kube-apiserver.yaml")
	}
	parked := filepath.Join(l.Dir(), "parked.yaml")
	move := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	stopped := false
	// A kubelet that has just started forgets a static pod that goes before it has seen the pod in the API as well, and leaves its
	// containers running: then it is shown the pod once more.
	for range 5 {
		move(manifest, parked)
		stopped = apiServerBecomes(t, l, false, 20*time.Second)
		move(parked, manifest)
		if stopped {
			break
		}
		time.Sleep(5 * time.Second)
	}
	if !stopped {
		t.Fatal("the API server does not stop")
	}
	if !apiServerBecomes(t, l, true, 5*time.Minute) {
		t.Fatal("the API server does not become ready again")
	}
}

// apiServerBecomes waits until the API server answers, or no longer does, and reports whether it does so in time.
func apiServerBecomes(t *testing.T, l *lab.Lab, ready bool, timeout time.Duration) bool {
	t.Helper()
	for end := time.Now().Add(timeout); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if _, status := on(t, l, "kubectl", "get", "--raw", "/readyz", "--request-timeout=5s"); (status == 0) == ready {
			return true
		}
	}
	return false
}
