//go:build linux

package lab

import (
	"bytes"
	_ "embed"
	"fmt"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"slices"
	"text/template"
)

//go:embed scripts/hold.sh
var holdScript string

//go:embed scripts/node.sh
var nodeScript string

//go:embed scripts/network.sh
var networkScript string

//go:embed scripts/enter.sh
var enterScript string

//go:embed scripts/kubelet.sh
var kubeletScript string

//go:embed scripts/crictl.sh
var crictlScript string

// boundPaths are the node's directories that a lab keeps in its own directory and bind-mounts. /run
// comes last: it hides the machine's own, which is needed while mounting.
func boundPaths() []string {
	return []string{
		"/etc/pf9", "/etc/kubernetes", "/etc/cni", "/etc/containerd", "/etc/keepalived",
		"/opt/cni", "/opt/pf9",
		"/var/lib/cni", "/var/lib/containerd", "/var/lib/etcd", "/var/lib/kubelet", "/var/lib/kube-proxy",
		"/var/log/containers", "/var/log/kubernetes", "/var/log/pods",
		"/run",
	}
}

// statePath is the directory for pmk-sched's state on a node. It is bind-mounted before the
// directories in Kept, since the labs may be below it.
const statePath = "/var/lib/pmk-sched"

// coveredPaths are directories of the machine in which a node needs entries that the machine does
// not have. A lab mounts an overlay on them, so that the machine's directories do not change.
func coveredPaths() []string {
	return []string{"/etc", "/opt", "/usr/libexec", "/var/lib", "/var/log"}
}

// tunables are the kernel settings that a kubelet would set for the whole machine
// (pkg/kubelet/cm/container_manager_linux.go, setupKernelTunables). A lab's kubelet finds them set.
func tunables() map[string]string {
	return map[string]string{
		"vm/overcommit_memory":      "1",
		"vm/panic_on_oom":           "0",
		"kernel/panic":              "10",
		"kernel/panic_on_oops":      "1",
		"kernel/keys/root_maxkeys":  "1000000",
		"kernel/keys/root_maxbytes": "25000000",
	}
}

const cgroupDir = "/sys/fs/cgroup"

type scriptData struct {
	// What is the description of the host in messages: "the network" or "node NAME".
	Name, Dir, What, Host       string
	Bridge                      string
	Link, MAC, Address, Gateway string
	Prefix                      int
	Nodes                       []scriptNode
	Roots, Groups               []string // the host's cgroups and the cgroups of its processes
	Trees                       []tree
	TreeLinks                   map[string]string
	Covered, Bound              []string
	State                       string
	Kept                        []string // directories below Covered that stay the machine's own
	Tunables                    map[string]string
	HolderPID                   string // file
	Kubelet                     string
}

type tree struct{ Path, Type, Options string }

// scriptNode is another node, as a node sees it. Pods is empty if there is no route to its pods.
type scriptNode struct{ Host, Address, Pods string }

// scripts renders a host's scripts. initScript runs in its namespaces.
func scripts(initScript string, d scriptData) (map[string][]byte, error) {
	out := map[string][]byte{}
	for name, text := range map[string]string{"hold": holdScript, "init.sh": initScript, "enter": enterScript} {
		script, err := render(name, text, d)
		if err != nil {
			return nil, err
		}
		out[name] = script
	}
	return out, nil
}

func render(name, text string, d scriptData) ([]byte, error) {
	functions := template.FuncMap{"q": quote, "base": path.Base}
	t, err := template.New(name).Funcs(functions).Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("read script %s: %w", name, err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, d); err != nil {
		return nil, fmt.Errorf("write script %s: %w", name, err)
	}
	return b.Bytes(), nil
}

// hostScripts returns the input that the scripts of all hosts share.
func (l *Lab) hostScripts(h host, g group, what string) scriptData {
	var groups []string
	for _, dir := range g.dirs() {
		groups = append(groups, filepath.Join(dir, hostGroup))
	}
	return scriptData{
		Name: l.Name(), Dir: h.dir, What: what, Roots: g.dirs(), Groups: groups, Prefix: 24,
		HolderPID: h.pidFile(holder),
	}
}

func (l *Lab) networkScripts(g group, subnet netip.Prefix) scriptData {
	d := l.hostScripts(l.network(), g, "the network")
	d.Bridge, d.Link, d.Address = bridge, linkName(l.dir), addressIn(subnet, balancerAddress).String()
	return d
}

func (n *Node) scripts(g group, subnet netip.Prefix, kept []string) scriptData {
	d := n.lab.hostScripts(n.host, g, "node "+n.name)
	for _, h := range g.hierarchies {
		t := tree{Path: h.path, Type: "cgroup", Options: h.options}
		if h.v2 {
			t = tree{Path: h.path, Type: "cgroup2"}
		}
		d.Trees = append(d.Trees, t)
	}
	for _, other := range n.lab.Nodes() {
		node := scriptNode{Host: other.hostName, Address: other.address.String()}
		if n.hasKubelet() && other.hasKubelet() {
			node.Pods = other.pods.String()
		}
		d.Nodes = append(d.Nodes, node)
	}
	d.Host, d.Link, d.MAC = n.hostName, n.port(), hardwareAddress(n.address)
	d.Address, d.Gateway = n.address.String(), addressIn(subnet, machineAddress).String()
	d.TreeLinks = treeLinks(cgroupDir)
	d.Covered, d.Bound, d.State, d.Tunables = coveredPaths(), boundPaths(), statePath, tunables()
	d.Kept = slices.Compact(slices.Sorted(slices.Values(kept)))
	return d
}

// treeLinks returns the symbolic links for hierarchies with several names, such as cpu for
// cpu,cpuacct.
func treeLinks(dir string) map[string]string {
	links := map[string]string{}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil {
			links[filepath.Join(dir, e.Name())] = to
		}
	}
	return links
}

func (h host) writeScripts(initScript string, d scriptData) error {
	all, err := scripts(initScript, d)
	if err != nil {
		return err
	}
	for name, data := range all {
		if err := os.WriteFile(filepath.Join(h.dir, name), data, 0o755); err != nil {
			return fmt.Errorf("write script: %w", err)
		}
	}
	return nil
}

// supervisedKubelet returns the kubelet of a node that kubeadm configures.
func (n *Node) supervisedKubelet() daemon {
	return daemon{"kubelet", []string{filepath.Join(n.dir, "kubelet")}}
}

// writeKubeletScript writes the script that supervisedKubelet runs.
func (n *Node) writeKubeletScript() error {
	script, err := render("kubelet", kubeletScript,
		scriptData{Name: n.lab.Name(), What: "node " + n.name, Kubelet: n.binary("kubelet")})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(n.dir, "kubelet"), script, 0o755); err != nil {
		return fmt.Errorf("write script: %w", err)
	}
	return nil
}
