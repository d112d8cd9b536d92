package replace

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/lab"
)

// steps of a replacement, as the person sees them pass, but for the last.
var steps = []string{
	"inspect the cluster", "check", "lock", "back up", "apply the plugins' role", "write configuration", "swap", "wait until it runs", "verify", "wait until stable", "mark replaced",
}

// What is found out before anything is touched.
func TestWhatCannotWorkIsRefusedUntouched(t *testing.T) {
	for i, c := range []struct {
		name string
		args func(t *testing.T, m *master) []string
		code int
		says []string
	}{
		{"image missing", func(*testing.T, *master) []string { return []string{"--image", "localhost/not-there:v1"} }, 2, []string{"localhost/not-there:v1", "--load containerd"}},
		{"unknown plugin", func(t *testing.T, m *master) []string {
			file := filepath.Join(work, m.name+"-unknown.yaml")
			text := "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\nprofiles:\n- plugins: {score: {enabled: [{name: NoSuchPlugin}]}}\n"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return []string{"--image", m.ours(t), "--config", file}
		}, 2, []string{"NoSuchPlugin"}},
		{"wrong minor", func(t *testing.T, m *master) []string { return []string{"--image", m.faulty(t, "crash", "v1.25.4")} }, 2, []string{"v1.25.4", "v1.24.3", "same minor"}},
		{"nothing asked for", func(*testing.T, *master) []string { return nil }, 2, []string{"--image"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := lend(t, []shape{kubeadm, pmk}[i%2])
			m.pmkSched(t, append([]string{"replace", "--yes"}, c.args(t, m)...)...).fails(t, c.code, c.says...)
			m.isOriginal(t)
		})
	}
}

func TestFullDiskIsRefusedUntouched(t *testing.T) {
	m := lend(t, kubeadm)
	root := filepath.Join(labs, m.name, "root")
	state := filepath.Join(root, "var/lib/pmk-sched")
	got := m.exec(t, "sh", "-c", fmt.Sprintf("mkdir -p %[1]s && mount -t tmpfs -o size=64k none %[1]s && %[2]s replace --yes --image %[3]s; code=$?; umount %[1]s; exit $code", state, program, m.ours(t)))
	got.fails(t, 1, "full", "/var/lib/pmk-sched")
	m.isOriginal(t)
}

// A scheduler that does not work is taken back: the old one runs again, and the API server was not touched.
func TestSchedulerThatFailsIsTakenBack(t *testing.T) {
	for _, c := range []struct {
		name, behaviour string
		shape           shape
		args            []string
		says            []string // patterns
	}{
		{"ends at once", "crash", pmk, nil, []string{"exit status 7", "this scheduler ends at once"}},
		{"ends after 20 seconds", "crash-later", kubeadm, nil, []string{"exit status 7", "after 20 seconds"}},
		{"never gets ready", "silent", kubeadm, []string{"--timeout", "30s"}, []string{"not all containers are ready"}},
		{"never leads", "silent", pmk, []string{"--timeout", "30s"}, []string{"no scheduler holds the lease kube-scheduler|the lease kube-scheduler is still held by the previous scheduler"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := lend(t, c.shape)
			image, server := m.faulty(t, c.behaviour, m.branch), m.apiServer(t)
			failed := m.pmkSched(t, append([]string{"replace", "--yes", "--image", image}, c.args...)...)
			failed.fails(t, 1, "✓ undo swap", "manifest is restored")
			for _, pattern := range c.says {
				if !regexp.MustCompile(pattern).MatchString(failed.stderr) {
					t.Errorf("the person is not told %q: %s", pattern, failed)
				}
			}
			m.isOriginal(t)
			if now := m.apiServer(t); now != server {
				t.Errorf("the API server was restarted: it was container %s and is %s", server, now)
			}
			m.pmkSched(t, "status").ok(t)
		})
	}
}

func TestManifestThatIsEditedMeanwhileIsNotOverwritten(t *testing.T) {
	m := lend(t, kubeadm)
	edited := append(bytes.Clone(m.original), "# a note\n"...)
	at := filepath.Join(labs, m.name, "root", m.manifest())
	got := m.at(t, "check", func(pid int) {
		signal(t, syscall.SIGSTOP)(pid)
		if err := os.WriteFile(at, edited, 0o600); err != nil {
			t.Error(err)
		}
		signal(t, syscall.SIGCONT)(pid)
	}, "replace", "--yes", "--image", m.ours(t))
	got.fails(t, 1, "edited")
	if now := m.read(t, m.manifest()); !bytes.Equal(now, edited) {
		t.Errorf("the edit was lost:\n%s", now)
	}
	m.schedules(t)
	if err := os.WriteFile(at, m.original, 0o600); err != nil {
		t.Fatal(err)
	}
	m.isOriginal(t)
}

func TestTwoReplacesAtOnceDoNotMix(t *testing.T) {
	m := lend(t, pmk)
	image := m.ours(t)
	results := make([]result, 2)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() { results[i] = m.pmkSched(t, "replace", "--yes", "--steady", "1s", "--image", image) })
	}
	wg.Wait()
	done := 0
	for _, r := range results {
		if r.code == 0 {
			done++
		} else if !strings.Contains(r.stderr, "another run is in progress") && !strings.Contains(r.stderr, "edited in the meantime") {
			t.Errorf("the one that came second does not say so: %s", r)
		}
	}
	if done == 0 {
		t.Fatalf("neither came through:\n%s\n%s", results[0], results[1])
	}
	m.pmkSched(t, "verify", "--default").ok(t)
	m.pmkSched(t, "restore", "--yes").ok(t)
	m.isOriginal(t)
}

// kill -9 after each step, and then each of the two ways on.
func TestReplaceKilledAtAnyStepIsRestoredOrGoneOnWith(t *testing.T) {
	for i, step := range steps {
		t.Run(step, func(t *testing.T) {
			m := lend(t, []shape{pmk, kubeadm}[i%2])
			image := m.ours(t)
			m.at(t, step, signal(t, syscall.SIGKILL), "replace", "--yes", "--steady", "1s", "--image", image)
			m.pmkSched(t, "restore", "--yes").ok(t)
			m.isOriginal(t)
			m.at(t, step, signal(t, syscall.SIGKILL), "replace", "--yes", "--steady", "1s", "--image", image)
			m.pmkSched(t, "replace", "--yes", "--steady", "1s", "--image", image).ok(t)
			m.pmkSched(t, "status").ok(t)
			m.pmkSched(t, "verify", "--default").ok(t)
			m.pmkSched(t, "restore", "--yes").ok(t)
			m.isOriginal(t)
		})
	}
}

// A run is killed after the swap and the kubelet takes its time: the next run finds its own manifest in place, and a former scheduler
// that has yet to end.
func TestReplaceGoesOnBeforeTheKubeletHasReadTheManifest(t *testing.T) {
	for _, s := range []shape{kubeadm, pmk} {
		t.Run(s.String(), func(t *testing.T) {
			m := lend(t, s)
			image := m.ours(t)
			kubelet := func(what string) { m.sh(t, "pkill -"+what+" -x --ns $$ --nslist net kubelet") }
			m.at(t, "swap", func(pid int) {
				kubelet("STOP")
				signal(t, syscall.SIGKILL)(pid)
			}, "replace", "--yes", "--steady", "1s", "--image", image)
			var wg sync.WaitGroup
			wg.Go(func() {
				time.Sleep(2 * time.Second)
				kubelet("CONT")
			})
			m.pmkSched(t, "replace", "--yes", "--steady", "1s", "--image", image).ok(t)
			wg.Wait()
			m.pmkSched(t, "verify", "--default").ok(t)
			m.pmkSched(t, "restore", "--yes").ok(t)
			m.isOriginal(t)
		})
	}
}

// The kubelet and containerd are restarted between the swap and the new scheduler's start.
func TestNodeRestartedHalfWay(t *testing.T) {
	for _, s := range []shape{kubeadm, pmk} {
		t.Run(s.String(), func(t *testing.T) {
			m := lend(t, s)
			l, err := lab.Get(labs, m.name)
			if err != nil {
				t.Fatal(err)
			}
			got := m.at(t, "swap", func(int) {
				if err := l.RestartNode(t.Context()); err != nil {
					t.Error(err)
				}
			}, "replace", "--yes", "--steady", "1s", "--image", m.ours(t))
			m.schedules(t)
			if got.code == 0 {
				m.pmkSched(t, "verify", "--default").ok(t)
			}
			m.pmkSched(t, "restore", "--yes").ok(t)
			m.isOriginal(t)
		})
	}
}

// On PMK the API server is in the same pod. When it does not answer after the swap, the old manifest comes back without it.
func TestSilentAPIServerBringsTheOldManifestBackUnasked(t *testing.T) {
	m := lend(t, pmk)
	freeze := func(what string) { m.sh(t, "pkill -"+what+" -x --ns $$ --nslist net kube-apiserver") }
	back := make(chan bool, 1)
	got := m.at(t, "swap", func(int) {
		freeze("STOP")
		go func() {
			defer close(back)
			for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Second) {
				now, err := os.ReadFile(filepath.Join(labs, m.name, "root", m.manifest()))
				if err == nil && bytes.Equal(now, m.original) {
					back <- true
					break
				}
			}
			freeze("CONT")
		}()
	}, "replace", "--yes", "--image", m.ours(t))
	if !<-back {
		t.Error("the old manifest did not come back while the API server was silent")
	}
	got.fails(t, 1, "did not answer", "manifest is restored")
	m.isOriginal(t)
}
