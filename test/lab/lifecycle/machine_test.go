//go:build linux && (cases || faults || labs)

package lifecycle

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
)

// conntrack is a setting that does not exist until a process on the machine first tracks
// connections.
const conntrack = "net/netfilter/nf_conntrack_max"

// ofLabs matches the names that the programs of a lab use on its nodes. Other programs of the
// machine, and other tests, may add and remove their own files at any time.
var ofLabs = regexp.MustCompile(
	`kube|etcd|containerd|containers|pods|runc|cni|netns|pf9|pmk|haproxy|keep|kwok|rancher|lab`)

// traces are everything on the machine that a lab could leave behind, a line each.
type traces map[string]bool

// look lists the traces on the machine.
func look(t *testing.T) traces {
	t.Helper()
	seen := traces{}
	add := func(kind, line string) {
		if line = strings.TrimSpace(line); line != "" {
			seen[kind+": "+line] = true
		}
	}
	for line := range strings.SplitSeq(read(t, "/proc/mounts"), "\n") {
		add("mount", line)
	}
	for line := range strings.SplitSeq(output(t, "ip", "-o", "link"), "\n") {
		if _, rest, ok := strings.Cut(line, ": "); ok {
			name, _, _ := strings.Cut(rest, ": ")
			add("link", strings.Split(name, "@")[0])
		}
	}
	for line := range strings.SplitSeq(output(t, "ip", "route"), "\n") {
		add("route", line)
	}
	for line := range strings.SplitSeq(output(t, "ip", "netns"), "\n") {
		add("netns", line)
	}
	for line := range strings.SplitSeq(output(t, "iptables-save"), "\n") {
		if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, ":") {
			add("rule", line)
		}
	}
	for _, tree := range []string{"/sys/fs/cgroup"} {
		_ = filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				add("control group", path)
			}
			return nil
		})
	}
	for _, dir := range []string{"/", "/etc", "/opt", "/run", "/var/lib", "/var/log", "/usr/libexec"} {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if ofLabs.MatchString(e.Name()) {
				add("entry", filepath.Join(dir, e.Name()))
			}
		}
	}
	for _, name := range []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
		conntrack} {
		value, _ := os.ReadFile("/proc/sys/" + name)
		add("setting", name+"="+string(value))
	}
	return seen
}

// processes lists the programs of a lab that run on the machine, by process id.
func processes(t *testing.T) map[int]string {
	t.Helper()
	programs := []string{
		"etcd", "containerd", "containerd-shim", "runc", "ctr", "kubelet", "kube-proxy", "kube-apiserver",
		"kube-controller", "kube-scheduler", "kubeadm", "haproxy", "keepalived", "kwok", "sleep", "pause", "sh", "busybox",
	}
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		t.Fatal(err)
	}
	found := map[int]string{}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue
		}
		name, rest, _ := strings.Cut(strings.TrimPrefix(string(stat), strconv.Itoa(pid)+" ("), ") ")
		if strings.HasPrefix(rest, "Z") || !slices.ContainsFunc(programs,
			func(p string) bool { return name == p || p == "containerd-shim" && strings.HasPrefix(name, p) }) {
			continue
		}
		groups, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
		what := fmt.Sprintf("%s %s", name, strings.ReplaceAll(string(groups), "\n", " "))
		if mounts, err := os.Readlink(filepath.Join(dir, "ns/mnt")); err == nil && mounts != own &&
			!strings.Contains(what, "pmk-sched-lab-") {
			what = "in a lab or container, but in no group of a lab: " + what
		}
		found[pid] = what
	}
	return found
}

// machine is the state of the machine before a test. Its methods compare it with the state after
// the test.
type machine struct {
	before    traces
	processes map[int]string
	// others are the network links of the shared labs, and of other labs in their directory, so far.
	others map[string]bool
}

func watchMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{others: map[string]bool{}}
	m.lookAtOthers(t)
	m.before, m.processes = look(t), processes(t)
	return m
}

// unchanged fails the test for everything that is new on the machine, and for everything that is
// gone, at each look. The kernel and the machine's first process take a moment to release the
// resources of ended processes, and other tests have programs that run for a moment.
func (m *machine) unchanged(t *testing.T) {
	t.Helper()
	left := m.differences(t)
	for deadline := time.Now().Add(10 * time.Second); len(left) > 0 && time.Now().Before(deadline); {
		time.Sleep(200 * time.Millisecond)
		now := m.differences(t)
		left = slices.DeleteFunc(left, func(line string) bool { return !slices.Contains(now, line) })
	}
	if len(left) == 0 {
		return
	}
	slices.Sort(left)
	t.Errorf("the machine changed:\n%s", strings.Join(left, "\n"))
}

func (m *machine) differences(t *testing.T) []string {
	t.Helper()
	var out []string
	after := look(t)
	m.lookAtOthers(t)
	for line := range after {
		if !m.before[line] && !m.isOthers(line) {
			out = append(out, "new "+line)
		}
	}
	for line := range m.before {
		if !after[line] && !m.isOthers(line) {
			out = append(out, "gone "+line)
		}
	}
	for pid, what := range processes(t) {
		ours := strings.Contains(what, "/pmk-sched-lab-"+prefix) || strings.HasPrefix(what, "in a lab")
		if m.processes[pid] == "" && ours {
			out = append(out, fmt.Sprintf("new process %d: %s", pid, what))
		}
	}
	return out
}

// isOthers reports whether a trace comes from a lab or test of another package, from the session
// that runs the tests, or from a unit that systemd starts and ends on its own. Network links come
// from this package, except for the links of the shared labs.
func (m *machine) isOthers(line string) bool {
	if strings.Contains(line, "/pmk-sched-lab-") {
		return !strings.Contains(line, "/pmk-sched-lab-"+prefix)
	}
	if strings.Contains(line, "pmklab") {
		for link := range m.others {
			if strings.Contains(line, link) {
				return true
			}
		}
		return false
	}
	if strings.HasPrefix(line, "setting: "+conntrack) {
		return m.before["setting: "+conntrack+"="]
	}
	others := []string{"/process_api/", "/var/lib/containers", " " + os.TempDir() + "/", ".slice/", "/init.scope",
		" /run/user/", " /run/credentials/", " " + labs.Dir() + "/"}
	return slices.ContainsFunc(others, func(of string) bool { return strings.Contains(line, of) })
}

// lookAtOthers remembers the links of the labs that tests of other packages start, and take down,
// at any time.
func (m *machine) lookAtOthers(t *testing.T) {
	t.Helper()
	found, err := lab.List(labs.Dir())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range found {
		m.others[l.Link()] = true
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func output(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).Output()
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(argv, " "), err)
	}
	return string(out)
}
