//go:build linux

package plugins

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	local "github.com/pmk-sched/pmk-sched/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/internal/build"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// schedulerProcess is a kube-scheduler that is started again and again, as the kubelet would do.
type schedulerProcess struct {
	binary, config, log string
	args                []string
	cmd                 *exec.Cmd
	done                chan struct{}
}

// newSchedulerProcess configures a scheduler with a profile, in YAML, that acts as a user ("" has all permissions). It ends with the test.
func newSchedulerProcess(t *testing.T, built *build.Result, user, schedulerName string, enable profiles.Plugin) *schedulerProcess {
	t.Helper()
	dir := t.TempDir()
	binary, ok := built.Binary(build.KubeScheduler, build.Host())
	if !ok {
		t.Fatal("no kube-scheduler was built for this machine")
	}
	s := &schedulerProcess{binary: binary.Path, config: filepath.Join(dir, "config.yaml"), log: filepath.Join(dir, "log")}
	for _, plugin := range built.Info.Plugins {
		if plugin.Name == enable.Name {
			enable.Points = plugin.Points
		}
	}
	port, err := local.FreePort() // of the plain HTTP listener of 1.20 to 1.22
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	rendered, err := profiles.Render(profiles.Request{
		Release: wanted(t), SchedulerName: schedulerName, Kubeconfig: kubeconfig, Preset: "default", Enable: []profiles.Plugin{enable}, InsecurePort: port,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.args = rendered.Args
	if err := errors.Join(server.WriteKubeconfig(kubeconfig, user), os.WriteFile(s.config, rendered.YAML, 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.cmd != nil {
			_ = s.cmd.Process.Kill() // it may be gone
			<-s.done
		}
	})
	return s
}

// start starts it with an empty log.
func (s *schedulerProcess) start(t *testing.T) {
	t.Helper()
	log, err := os.Create(s.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	s.cmd = exec.Command(s.binary, append(s.args, "--config", s.config, "--secure-port=0")...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	s.done = done
	go func(cmd *exec.Cmd) {
		defer close(done)
		_ = cmd.Wait() // its state is looked at
	}(s.cmd)
}

// endsWith waits until it has ended, as Go programs do that panic, and looks for texts in its log.
func (s *schedulerProcess) endsWith(ctx context.Context, t *testing.T, texts ...string) {
	t.Helper()
	select {
	case <-s.done:
	case <-ctx.Done():
		t.Fatalf("the scheduler still runs: %s", s.text())
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 2 {
		t.Errorf("exit status %d", code)
	}
	for _, text := range texts {
		if !strings.Contains(s.text(), text) {
			t.Errorf("its log lacks %q:\n%s", text, s.text())
		}
	}
}

func (s *schedulerProcess) text() string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// createReadyNode makes a node with room.
func createReadyNode(ctx context.Context, t *testing.T, kube kubernetes.Interface, name string) {
	t.Helper()
	node, err := kube.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	if _, err := kube.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// schedule makes a pod for the scheduler that is called as its namespace.
func schedule(ctx context.Context, t *testing.T, kube kubernetes.Interface, namespace, name string, labels map[string]string) {
	t.Helper()
	pod := newPod(namespace, 0)
	pod.Name, pod.Labels, pod.Spec.SchedulerName = name, labels, namespace
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} // these nodes have no kubelet, so they never become ready
	if _, err := kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func awaitBound(ctx context.Context, t *testing.T, kube kubernetes.Interface, namespace, name string) {
	t.Helper()
	run.Eventually(t, "pod "+name+" is bound", func(context.Context) (bool, string) {
		pod, err := kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return pod.Spec.NodeName != "", fmt.Sprint(pod.Status.Conditions)
	})
}
