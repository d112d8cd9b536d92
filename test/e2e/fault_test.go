package e2e

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// deploySteps runs a deployment to its end and returns the names of its steps, as the person sees them pass.
func (m master) deploySteps(t *testing.T, image string) []string {
	t.Helper()
	var steps []string
	for _, line := range strings.Split(m.pmkSched(t, "deploy", "--name", "my-scheduler", "--image", image).ok(t).stderr, "\n") {
		if step, ok := passedStep(line); ok {
			steps = append(steps, step)
		}
	}
	if len(steps) < 4 {
		t.Fatalf("a deployment tells only of these steps: %q", steps)
	}
	return steps
}

// passedStep reads the name of a finished step from a line of progress: `✓ name (1.2s)`.
func passedStep(line string) (string, bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "✓ ")
	if !ok {
		return "", false
	}
	if i := strings.LastIndex(rest, " ("); i > 0 {
		rest = rest[:i]
	}
	return rest, true
}

// killAfter starts a deployment and kills it the hard way as soon as the given step has passed.
func (m master) killAfter(t *testing.T, image, step string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := m.command(ctx, program, "deploy", "--name", "my-scheduler", "--image", image)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if passed, ok := passedStep(lines.Text()); ok && passed == step && !killed {
			killed = true
			kill9(t, program, "deploy")
		}
	}
	_, _ = io.Copy(io.Discard, stderr)
	_ = cmd.Wait()
	if !killed {
		t.Fatalf("step %q never passed", step)
	}
}

// kill9 kills every process of the program that runs the given command on a master.
func kill9(t *testing.T, program, command string) {
	t.Helper()
	if out, err := exec.Command("pkill", "-KILL", "-f", "^"+program+" "+command).CombinedOutput(); err != nil {
		t.Fatalf("kill %s: %v: %s", command, err, out)
	}
}

func TestDeployKilledAfterAnyStepConvergesWhenRunAgain(t *testing.T) {
	m := labUp(t, "pmk")
	image := m.image(t)
	steps := m.deploySteps(t, image)
	m.uninstall(t, "my-scheduler")
	for _, step := range steps[:len(steps)-1] {
		t.Run(step, func(t *testing.T) {
			m.killAfter(t, image, step)
			m.pmkSched(t, "deploy", "--name", "my-scheduler", "--image", image).ok(t)
			m.pmkSched(t, "verify", "--name", "my-scheduler").ok(t)
			m.uninstall(t, "my-scheduler")
		})
	}
}

func TestAPIServerRestartedDuringDeployDoesNotLoseIt(t *testing.T) {
	m := labUp(t, "kubeadm")
	image := m.image(t)
	t.Cleanup(func() { m.uninstall(t, "my-scheduler") })

	restarted := make(chan result)
	go func() {
		// The API server's process dies under the deployment; the kubelet starts it again.
		time.Sleep(time.Second)
		restarted <- m.exec(t, "sh", "-c", "pkill -KILL -x --ns $$ --nslist net kube-apiserver")
	}()
	deployed := m.pmkSched(t, "deploy", "--name", "my-scheduler", "--image", image)
	if stopped := <-restarted; stopped.code != 0 {
		t.Fatalf("stop the API server: %s", stopped)
	}
	if deployed.code != 0 {
		if !strings.Contains(deployed.stderr, "error: ") {
			t.Errorf("a deployment that the API server's restart broke says nothing: %s", deployed)
		}
		eventually(t, "the API server is back", func() bool { return m.exec(t, "kubectl", "get", "--raw", "/readyz").code == 0 })
		m.pmkSched(t, "deploy", "--name", "my-scheduler", "--image", image).ok(t)
	}
	m.pmkSched(t, "verify", "--name", "my-scheduler").ok(t)
}
