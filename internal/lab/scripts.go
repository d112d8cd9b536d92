//go:build linux

package lab

import (
	"bytes"
	_ "embed"
	"fmt"
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

//go:embed scripts/enter.sh
var enterScript string

// boundPaths are the node's directories that a lab keeps in its own directory and bind-mounts. /run
// comes last: it hides the machine's own, which is needed while mounting.
func boundPaths() []string {
	return []string{
		"/etc/pf9", "/etc/kubernetes", "/etc/cni", "/etc/containerd",
		"/opt/cni", "/opt/pf9",
		"/var/lib/cni", "/var/lib/containerd", "/var/lib/etcd", "/var/lib/kubelet", "/var/lib/kube-proxy",
		"/var/log/containers", "/var/log/pods",
		"/run",
	}
}

// coveredPaths are directories of the machine in which a node needs entries that the machine does
// not have. A lab mounts an overlay on them, so that the machine's directories do not change.
func coveredPaths() []string { return []string{"/etc", "/opt", "/var/lib", "/var/log"} }

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

// cgroupDir is the mount point of cgroups.
const cgroupDir = "/sys/fs/cgroup"

// scriptData is the input of the scripts.
type scriptData struct {
	Name, Dir, Host        string
	Link, Address, Gateway string
	Prefix                 int
	Roots, Groups          []string // the lab's cgroups, and those of the node's processes
	Trees                  []tree
	TreeLinks              map[string]string
	Covered, Bound         []string
	Kept                   []string // directories below Covered that stay the machine's own
	Tunables               map[string]string
	HolderPID              string // file
}

// tree is a cgroup hierarchy to mount.
type tree struct{ Path, Type, Options string }

// scripts renders the three scripts of a lab.
func scripts(d scriptData) (map[string][]byte, error) {
	out := map[string][]byte{}
	for name, text := range map[string]string{"hold": holdScript, "node.sh": nodeScript, "enter": enterScript} {
		t, err := template.New(name).Funcs(template.FuncMap{"q": quote, "base": path.Base}).Option("missingkey=error").Parse(text)
		if err != nil {
			return nil, fmt.Errorf("read script %s: %w", name, err)
		}
		var b bytes.Buffer
		if err := t.Execute(&b, d); err != nil {
			return nil, fmt.Errorf("write script %s: %w", name, err)
		}
		out[name] = b.Bytes()
	}
	return out, nil
}

func (l *Lab) scriptData(n node, g group, kept []string) scriptData {
	var groups []string
	for _, dir := range g.dirs() {
		groups = append(groups, filepath.Join(dir, nodeGroup))
	}
	var trees []tree
	for _, h := range g.hierarchies {
		t := tree{Path: h.path, Type: "cgroup", Options: h.options}
		if h.v2 {
			t = tree{Path: h.path, Type: "cgroup2"}
		}
		trees = append(trees, t)
	}
	kept = slices.Compact(slices.Sorted(slices.Values(kept)))
	return scriptData{
		Name: l.Name(), Dir: l.dir, Host: n.host, Link: linkName(l.dir),
		Address: n.address.String(), Gateway: n.gateway.String(), Prefix: 24,
		Roots: g.dirs(), Groups: groups, Trees: trees, TreeLinks: treeLinks(cgroupDir),
		Covered: coveredPaths(), Bound: boundPaths(), Kept: kept, Tunables: tunables(),
		HolderPID: l.pidFile("holder"),
	}
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

func (l *Lab) writeScripts(d scriptData) error {
	all, err := scripts(d)
	if err != nil {
		return err
	}
	for name, data := range all {
		if err := os.WriteFile(filepath.Join(l.dir, name), data, 0o755); err != nil {
			return fmt.Errorf("write script: %w", err)
		}
	}
	return nil
}
