//go:build linux

// Package master takes extenders through their life on a real master: deployed as a service and as a sidecar with the commands that a
// person types, obeyed by a scheduler, restarted, and taken away without a trace.
package extender

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pmk-sched/pmk-sched/internal/image"
	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
)

const (
	// labName is the name of the one lab that there is at a time.
	labName = "xl-extender"
	// scheduler and extender are what is deployed.
	scheduler, extender = "asking", "asked"
	// patience is how long one command may take.
	patience = 15 * time.Minute
)

// program is the pmk-sched binary under test, labs the folder of the labs.
var program, labs string

func TestMain(m *testing.M) { os.Exit(runAll(m)) }

func runAll(m *testing.M) int {
	dir, err := os.MkdirTemp("", "extender-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "pmk-sched")
	if out, err := exec.Command("go", "build", "-o", program, "../../../cmd/pmk-sched").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build pmk-sched: %v\n%s", err, out)
		return 1
	}
	// /tmp may be in memory, which labs would fill.
	if labs, err = os.MkdirTemp("/var/tmp", "extender-"); err == nil {
		defer os.RemoveAll(labs)
		err = os.Setenv("PMK_SCHED_LAB_DIR", labs)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// master is the lab's control-plane node, with a client of an administrator who sits outside.
type master struct {
	controlplane.Plane
	// node is its name, gateway the machine's address as it sees it, socket its containerd's as the machine sees it.
	node, gateway, socket string
}

// workers are those that a scheduler has to choose among.
var workers = []string{"worker-001", "worker-002"}

// up brings a lab up, and takes it down when the test ends.
func up(t *testing.T, release string) *master {
	t.Helper()
	t.Cleanup(func() {
		if out, err := command(t, "lab", "down", "--name", labName); err != nil && !strings.Contains(out, "no such lab") {
			t.Errorf("take the lab down: %v\n%s", err, out)
		}
	})
	must(t, "lab", "up", "--name", labName, "--branch", release, "--layout", "kubeadm", "--nodes", fmt.Sprint(len(workers)))
	l, err := lab.Get(labs, labName)
	if err != nil {
		t.Fatal(err)
	}
	m := &master{socket: filepath.Join(l.Root(), image.DefaultContainerdSocket)}
	if m.gateway, err = addressOf(l.Link()); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig())
	if err == nil {
		m.Kube, err = kubernetes.NewForConfig(config)
	}
	if err != nil {
		t.Fatal(err)
	}
	m.takeIn(t)
	return m
}

// takeIn finds the node that is real, and puts the others into a group of their own.
func (m *master) takeIn(t *testing.T) {
	t.Helper()
	nodes := m.Kube.CoreV1().Nodes()
	list, err := nodes.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range list.Items {
		if !strings.HasPrefix(n.Name, "worker-") {
			m.node = n.Name
			continue
		}
		patch := fmt.Appendf(nil, `{"metadata": {"labels": {%q: "workers"}}}`, controlplane.GroupLabel)
		if _, err := nodes.Patch(t.Context(), n.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// addressOf is the address of a network interface of this machine.
func addressOf(link string) (string, error) {
	i, err := net.InterfaceByName(link)
	if err != nil {
		return "", fmt.Errorf("find the machine's end of the lab's network: %w", err)
	}
	addresses, err := i.Addrs()
	if err != nil {
		return "", fmt.Errorf("read the addresses of %s: %w", link, err)
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil {
			return n.IP.String(), nil
		}
	}
	return "", fmt.Errorf("link %s has no address", link)
}

// command runs the program on the machine itself and returns all that it wrote. It serves cleanups too, in which the test's own
// context has ended.
func command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatalf("run %s: %v", strings.Join(cmd.Args, " "), err)
	}
	return out.String(), err
}

func must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := command(t, args...)
	if err != nil {
		t.Fatalf("pmk-sched %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// pmkSched runs the program on the master, as its administrator would.
func (m *master) pmkSched(t *testing.T, args ...string) string {
	t.Helper()
	return must(t, append([]string{"lab", "exec", "--name", labName, "--", program}, args...)...)
}

// kubectl runs kubectl on the master.
func (m *master) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return must(t, append([]string{"lab", "exec", "--name", labName, "--", "kubectl"}, args...)...)
}

// build builds an image into the node's containerd. The node itself has no way out to download modules.
func (m *master) build(t *testing.T, tag string, args ...string) {
	t.Helper()
	must(t, append([]string{"build", "--busybox", "/bin/busybox", "--load", "containerd=" + m.socket, "--tag", tag}, args...)...)
}
