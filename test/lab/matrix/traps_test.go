//go:build linux && labs

package matrix

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// electionLease is the part of a Lease that names the leader.
type electionLease struct {
	Spec struct {
		HolderIdentity   string `json:"holderIdentity"`
		LeaseTransitions int    `json:"leaseTransitions"`
	} `json:"spec"`
}

func (n node) lease(t *testing.T, name string) electionLease {
	t.Helper()
	return run.Decode[electionLease](t, n.Kubectl(t, "get", "lease", "-n", "kube-system", name, "-o", "json"))
}

// leadsItselfOnly fails the test unless the deployed scheduler holds the lease named after it,
// which up to 1.21 only a configuration can set, and the default scheduler still holds its own.
// With coordinated leader election, from 1.31 on, the deployed scheduler is not a candidate for it.
func (n node) leadsItselfOnly(t *testing.T, before electionLease) {
	t.Helper()
	if after := n.lease(t, "kube-scheduler"); after != before {
		t.Errorf("the default scheduler's lease was %+v and is %+v", before, after)
	}
	if own := n.lease(t, "my-scheduler"); own.Spec.HolderIdentity == "" ||
		own.Spec.HolderIdentity == before.Spec.HolderIdentity {
		t.Errorf("the lease of my-scheduler is %+v", own)
	}
	if !strings.Contains(n.Kubectl(t, "api-resources", "--api-group=coordination.k8s.io", "-o", "name"),
		"leasecandidates") {
		return
	}
	if candidates := n.Kubectl(t, "get", "leasecandidates", "-A", "-o",
		"jsonpath={.items[*].metadata.name}"); strings.Contains(candidates, "my-scheduler") {
		t.Errorf("my-scheduler is a candidate: %s", candidates)
	}
}

// isOfItsRelease compares the version of the running program. From 1.31 on the version selects the
// features that are on.
func (n node) isOfItsRelease(t *testing.T) {
	t.Helper()
	if got := n.Kubectl(t, "exec", "-n", "kube-system", "deployment/my-scheduler", "--", "kube-scheduler",
		"--version"); got != "Kubernetes "+n.release {
		t.Errorf("the program says %q", got)
	}
	metrics := n.ask(t, n.addresses(t, "my-scheduler")[0], "/metrics").OK(t).Stdout
	if !strings.Contains(metrics, `git_version="`+n.release+`"`) {
		t.Error("its metrics name another release")
	}
	minor := n.minor(t)
	if minor < 31 {
		return
	}
	gates := map[string]string{}
	for _, found := range regexp.MustCompile(
		`(?m)^kubernetes_feature_enabled\{name="(\w+)",stage="\w*"\} (\d)$`).FindAllStringSubmatch(metrics, -1) {
		gates[found[1]] = found[2]
	}
	allocation := "0"
	if minor >= 34 {
		allocation = "1"
	}
	for gate, want := range map[string]string{"CoordinatedLeaderElection": "0", "DynamicResourceAllocation": allocation} {
		if gates[gate] != want {
			t.Errorf("feature gate %s is %q, want %s", gate, gates[gate], want)
		}
	}
}

// addresses are the secure ports of the pods of a deployed scheduler.
func (n node) addresses(t *testing.T, name string) []string {
	t.Helper()
	list := strings.Fields(n.Kubectl(t, "get", "pods", "-n", "kube-system", "-l", "app.kubernetes.io/instance="+name, "-o",
		`jsonpath={range .items[*]}{.status.podIP}:{.spec.containers[0].ports[0].containerPort}{"\n"}{end}`))
	if len(list) == 0 {
		t.Fatalf("scheduler %s has no pods", name)
	}
	return list
}

// ask sends a request to the secure port of the deployed scheduler, as the cluster's administrator.
func (n node) ask(t *testing.T, address, path string) run.Result {
	t.Helper()
	return n.Exec(t, "kubectl", "--server", "https://"+address, "--insecure-skip-tls-verify", "get", "--raw", path)
}

// socket is a TCP port on which a process listens.
type socket struct {
	port     int
	loopback bool
	inode    string
}

// listensWhereItShould checks the sockets of the deployed scheduler's process: its secure port and,
// on 1.20–1.22, one plain port on loopback, and no port that another process listens on as well.
func (n node) listensWhereItShould(t *testing.T, found inspect.Scheduler) {
	t.Helper()
	process := n.schedulerProcess(t)
	all := listening(t, process)
	own := map[string]bool{}
	fds, err := filepath.Glob(filepath.Join(process, "fd", "*"))
	if err != nil || len(fds) == 0 {
		t.Fatalf("no open files of %s: %v", process, err)
	}
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err == nil {
			own[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")] = true
		}
	}
	want := map[int]bool{found.Port: false} // by port, whether it is on loopback
	if found.InsecurePort != 0 {
		want[found.InsecurePort] = true
	}
	got := map[int]bool{}
	for _, s := range all {
		if own[s.inode] {
			got[s.port] = s.loopback
			continue
		}
		if _, ours := want[s.port]; ours {
			t.Errorf("another process listens on port %d too", s.port)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("it listens on (port: on loopback) %v, want %v", got, want)
	}
	if found.InsecurePort != 0 {
		n.Exec(t, "/bin/busybox", "wget", "-q", "-O", "-",
			fmt.Sprintf("http://127.0.0.1:%d/healthz", found.InsecurePort)).OK(t)
	}
}

// schedulerProcess returns the directory in /proc of the deployed scheduler's process, found by its
// command line and the lab's group.
func (n node) schedulerProcess(t *testing.T) string {
	t.Helper()
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range commands {
		command, _ := os.ReadFile(file)
		groups, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cgroup"))
		if strings.Contains(string(command), "--config=/etc/kubernetes/my-scheduler/") &&
			strings.Contains(string(groups), "/pmk-sched-lab-"+n.Name+"-") {
			return filepath.Dir(file)
		}
	}
	t.Fatal("the process of my-scheduler is not to be found")
	return ""
}

// listening reads the listening sockets of a process' network
// (Documentation/networking/proc_net_tcp).
func listening(t *testing.T, process string) []socket {
	t.Helper()
	var sockets []socket
	for _, file := range []string{"tcp", "tcp6"} {
		data, err := os.ReadFile(filepath.Join(process, "net", file))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			f := strings.Fields(line)
			if len(f) < 10 || f[3] != "0A" {
				continue
			}
			address, hex, _ := strings.Cut(f[1], ":")
			port, err := strconv.ParseInt(hex, 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			loopback := slices.Contains([]string{"0100007F", "0000000000000000FFFF00000100007F",
				"00000000000000000000000001000000"}, address)
			sockets = append(sockets, socket{port: int(port), loopback: loopback, inode: f[9]})
		}
	}
	return sockets
}

// standbysDoNotBlock deploys two replicas. The standby replica fills its caches only when it leads,
// and deploy does not wait for that.
func (n node) standbysDoNotBlock(t *testing.T) {
	t.Helper()
	if n.minor(t) < 28 {
		return
	}
	config := run.WriteFile(t, "delayed.yaml",
		"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\ndelayCacheUntilActive: true\n")
	args := []string{"deploy", "--name", "delayed", "--image", n.image(), "--credentials", "serviceaccount", "--replicas",
		"2", "--config", config}
	n.PMKSched(t, args...).OK(t)
	n.PMKSched(t, "verify", "--name", "delayed").OK(t)
	ready := 0
	addresses := n.addresses(t, "delayed")
	for _, address := range addresses {
		if n.minor(t) < 31 || n.ask(t, address, "/readyz").Code == 0 {
			ready++
		}
	}
	if want := map[bool]int{true: 1, false: 2}[n.minor(t) >= 31]; len(addresses) != 2 || ready != want {
		t.Errorf("%d of the pods at %v say that they are ready, want %d", ready, addresses, want)
	}
	n.Uninstall(t, "delayed")
}
