//go:build linux

// Package lifecycle tests internal/lab on this machine: labs start, work as a control-plane node of
// their layout, and leave nothing behind.
package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/versions"
)

// prefix begins the name of every lab that is made here.
const prefix = "labtest-"

// directories returns the state directory of a test, and the cache that all of them and pmk-sched
// itself share.
func directories(t *testing.T) (stateDir, cacheDir string) {
	t.Helper()
	stateDir, err := os.MkdirTemp("/var/tmp", "labs-") // /tmp may be in memory, which labs would fill
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		labs, err := lab.List(stateDir)
		if err != nil {
			t.Error(err)
		}
		for _, l := range labs {
			if err := lab.Down(context.WithoutCancel(t.Context()), stateDir, l.Name(), nil); err != nil {
				t.Error(err)
			}
		}
		if err := os.RemoveAll(stateDir); err != nil {
			t.Error(err)
		}
	})
	return stateDir, sharedCache(t)
}

func sharedCache(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("PMK_SCHED_CACHE"); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "pmk-sched")
}

func options(t *testing.T, stateDir, cacheDir, name string) lab.Options {
	t.Helper()
	release, err := versions.Parse(labs.Release)
	if err != nil {
		t.Fatal(err)
	}
	return lab.Options{
		Name: prefix + name, Release: release, StateDir: stateDir, CacheDir: cacheDir, Env: os.Environ(),
		OnStep: func(step string) func(error) {
			begin := time.Now()
			return func(err error) { t.Logf("%s (%.1fs) %v", step, time.Since(begin).Seconds(), err) }
		},
	}
}

// on runs a command on the node and returns its standard output and exit status.
func on(t *testing.T, l *lab.Lab, argv ...string) (string, int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status, err := l.Exec(t.Context(), lab.Command{Argv: argv, Env: os.Environ(), Stdout: &stdout, Stderr: &stderr})
	if err != nil {
		t.Fatal(err)
	}
	if status != 0 {
		t.Logf("%s: %s", strings.Join(argv, " "), stderr.String())
	}
	return stdout.String(), status
}

// kubectl runs kubectl on the node, which has to succeed.
func kubectl(t *testing.T, l *lab.Lab, args ...string) string {
	t.Helper()
	out, status := on(t, l, append([]string{"kubectl"}, args...)...)
	if status != 0 {
		t.Fatalf("kubectl %s: exit status %d", strings.Join(args, " "), status)
	}
	return strings.TrimSpace(out)
}

// pod is a pod on the master with a shell in it.
const pod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "%s"}, "spec": {
  "tolerations": [{"operator": "Exists"}], "nodeSelector": {"%s": ""}, "terminationGracePeriodSeconds": 0,
  "containers": [{"name": "shell", "image": "` + lab.BusyboxImage + `", "command": ["sh", "-c", "echo here I am; sleep 600"]}]}}`

func runPod(t *testing.T, l *lab.Lab, name, label string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pod.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, pod, name, label), 0o644); err != nil {
		t.Fatal(err)
	}
	kubectl(t, l, "apply", "-f", file)
	kubectl(t, l, "wait", "--for=condition=Ready", "--timeout=5m", "pod/"+name)
}

func TestPMKLab(t *testing.T) {
	n := labs.Shared(t, lab.LayoutPMK)
	l := n.Lab
	t.Run("has the layout of PMK", func(t *testing.T) { hasLayoutOfPMK(t, l) })
	t.Run("runs pods", func(t *testing.T) { podsRun(t, l, "node-role.kubernetes.io/master") })
	t.Run("schedules to the workers", func(t *testing.T) {
		kubectl(t, l, "create", "deployment", "many", "--image=none", "--replicas=20")
		kubectl(t, l, "rollout", "status", "--timeout=5m", "deployment/many") // "Available" are three quarters
		if got := kubectl(t, l, "get", "pods", "-l", "app=many", "-o",
			"jsonpath={.items[*].spec.nodeName}"); strings.Count(got, "worker-") != 20 {
			t.Errorf("pods are on %s", got)
		}
		kubectl(t, l, "delete", "deployment", "many")
	})
	t.Run("reports its status", func(t *testing.T) {
		status, err := l.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all := len(labs.Workers())
		if status.Version != labs.Release || len(status.Nodes) != 1 || !status.Nodes[0].Ready ||
			status.Workers != (lab.Workers{Total: all, Ready: all}) || status.Problem != "" {
			t.Errorf("%+v", status)
		}
		for _, p := range append(status.Processes, status.Nodes[0].Processes...) {
			if p.PID == 0 {
				t.Errorf("%s does not run", p.Name)
			}
		}
	})
	t.Run("prints the kubeconfig of its administrator", func(t *testing.T) { printsKubeconfig(t, n) })
	t.Run("refuses changes of nodes that it does not have", func(t *testing.T) {
		for _, change := range []string{"stop", "start", "cut", "heal"} {
			args := []string{"node", change, "--name", n.Name}
			run.PMKLab(t, args...).Fails(t, 2, "expected the name of one node, got 0 arguments", "pmk-lab status")
			run.PMKLab(t, append(args, "none")...).Fails(t, 2, "has no node \"none\"", "nodes of the lab: "+n.NodeName)
		}
	})
	t.Run("runs commands", func(t *testing.T) { commandsRun(t, l) })
	t.Run("cannot be started twice", func(t *testing.T) {
		o := options(t, labs.Dir(), sharedCache(t), "")
		o.Name = n.Name
		if _, err := lab.Up(t.Context(), o); !errors.Is(err, lab.ErrExists) {
			t.Errorf("got %v", err)
		}
	})
}

// printsKubeconfig checks that a client with the kubeconfig may read every Secret of the lab.
func printsKubeconfig(t *testing.T, n *labs.Node) {
	config, err := clientcmd.RESTConfigFromKubeConfig(
		[]byte(run.PMKLab(t, "kubeconfig", "--name", n.Name).OK(t).Stdout))
	if err != nil {
		t.Fatal(err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kube.CoreV1().Nodes().Get(t.Context(), n.NodeName, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := kube.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	run.PMKSched(t, "lab", "kubeconfig", "--name", "none").Fails(t, 2, "none")
}

func hasLayoutOfPMK(t *testing.T, l *lab.Lab) {
	name, err := l.NodeName()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"{.metadata.labels['node-role\\.kubernetes\\.io/master']}x": "x",
		"{.spec.taints[*].key}={.spec.taints[*].value}":             "node-role.kubernetes.io/master=true",
		"{.status.nodeInfo.kubeletVersion}":                         "v1.24.3",
	} {
		if got := kubectl(t, l, "get", "node", name, "-o", "jsonpath="+path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	if got := kubectl(t, l, "get", "pod", "k8s-master-"+name, "-n", "kube-system", "-o",
		"jsonpath={.spec.containers[*].name}"); got != "kube-controller-manager kube-apiserver kube-scheduler" {
		t.Errorf("the containers of the control plane are %q", got)
	}
	for _, file := range []string{"master.yaml", "kubeconfigs/kube-scheduler.yaml", "kubeconfigs/admin.yaml",
		"configs/kube-scheduler.yaml"} {
		if _, err := os.Stat(filepath.Join(l.Root(), "etc/pf9/kube.d", file)); err != nil {
			t.Error(err)
		}
		if _, status := on(t, l, "test", "-s", "/etc/pf9/kube.d/"+file); status != 0 {
			t.Errorf("%s is not at its place on the node", file)
		}
	}
	if _, err := os.Stat("/etc/pf9"); err == nil {
		t.Error("/etc/pf9 was made on the machine")
	}
}

func podsRun(t *testing.T, l *lab.Lab, label string) {
	runPod(t, l, "shell", label)
	if got := kubectl(t, l, "logs", "shell"); got != "here I am" {
		t.Errorf("its log is %q", got)
	}
	if got := kubectl(t, l, "exec", "shell", "--", "echo", "from within"); got != "from within" {
		t.Errorf("exec prints %q", got)
	}
	// kube-proxy writes the rules of the service a moment later.
	run.Eventually(t, "a pod reaches the API server by its service", func(context.Context) (bool, string) {
		out, _ := on(t, l, "kubectl", "exec", "shell", "--", "sh", "-c", "echo | nc -w 5 10.96.0.1 443 && echo connected")
		return strings.HasSuffix(strings.TrimSpace(out), "connected"), out
	})
	kubectl(t, l, "delete", "pod", "shell")
}

func commandsRun(t *testing.T, l *lab.Lab) {
	if out, _ := on(t, l, "sh", "-c",
		"hostname; echo $PMK_SCHED_NODE_ROOT; ls /sys/class/net | grep -cx eth0"); out != l.Name()+"\n"+l.Root()+"\n1\n" {
		t.Errorf("on the node: %q", out)
	}
	if _, status := on(t, l, "sh", "-c", "exit 7"); status != 7 {
		t.Errorf("exit status %d, want 7", status)
	}
	if _, status := on(t, l, "sh", "-c", "kill -9 $$"); status != 137 {
		t.Errorf("exit status %d of a killed command, want 137", status)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	begin := time.Now()
	_, err := l.Exec(ctx, lab.Command{Argv: []string{"sh", "-c", "sleep 97 & sleep 98"}, Env: os.Environ()})
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > time.Minute {
		t.Errorf("a command that is cancelled: %v after %s", err, time.Since(begin))
	}
	if out, _ := on(t, l, "sh", "-c", "grep -l '[s]leep.9[78]' /proc/[0-9]*/cmdline 2>/dev/null"); out != "" {
		t.Errorf("cancelled, but still running: %s", out)
	}
	// A container that is started by hand is part of the lab too.
	if _, status := on(t, l, "ctr", "-n", "k8s.io", "run", "-d", lab.BusyboxImage, "by-hand", "sleep",
		"600"); status != 0 {
		t.Error("ctr run fails")
	}
}

func TestDownOfAnUnknownLab(t *testing.T) {
	stateDir, _ := directories(t)
	if err := lab.Down(t.Context(), stateDir, prefix+"none", nil); !errors.Is(err, lab.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}
