package install

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// deploySteps are the steps of a deployment, as the person sees them pass.
var deploySteps = []string{
	"inspect the cluster", "preflight checks", "lock", "check configuration", "save revision", "apply", "wait until stable", "mark deployed", "prune",
}

// passedSteps reads the names of the finished steps from what a deployment told.
func passedSteps(stderr string) []string {
	var steps []string
	for _, line := range strings.Split(stderr, "\n") {
		if step, ok := passedStep(line); ok {
			steps = append(steps, step)
		}
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
	cmd := m.command(patience(t), program, "deploy", "--name", "my-scheduler", "--image", image)
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
			killed = kill9(cmd.Process.Pid, program+" deploy")
		}
	}
	if _, err := io.Copy(io.Discard, stderr); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil || !killed {
		t.Fatalf("the deployment ended by itself: %v", err)
	}
}

// kill9 kills the descendants of a process whose command line begins as given, and reports whether there was one.
func kill9(pid int, begin string) bool {
	killed := false
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range threads {
		children, _ := os.ReadFile(file)
		for child := range strings.FieldsSeq(string(children)) {
			id, err := strconv.Atoi(child)
			if err != nil {
				continue
			}
			line, _ := os.ReadFile("/proc/" + child + "/cmdline")
			if strings.HasPrefix(strings.ReplaceAll(string(line), "\x00", " "), begin) {
				killed = syscall.Kill(id, syscall.SIGKILL) == nil || killed
			}
			killed = kill9(id, begin) || killed
		}
	}
	return killed
}

func TestDeployKilledAfterAnyStepConvergesWhenRunAgain(t *testing.T) {
	for i, step := range deploySteps[:len(deploySteps)-1] {
		t.Run(step, func(t *testing.T) {
			m := lend(t, layouts[i%len(layouts)].layout)
			image := m.image(t)
			t.Cleanup(func() { m.uninstall(t, "my-scheduler") })
			m.killAfter(t, image, step)
			m.pmkSched(t, "deploy", "--name", "my-scheduler", "--image", image).ok(t)
			m.pmkSched(t, "diff", "--name", "my-scheduler", "--image", image).ok(t)
		})
	}
}

func TestAPIServerRestartedDuringDeployDoesNotLoseIt(t *testing.T) {
	m := lend(t, "kubeadm")
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
