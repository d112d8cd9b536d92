//go:build linux

package lab

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/versions"
)

type machine struct {
	// path is PATH, including the directories of the system's programs.
	path string
	// busybox is a static busybox, cniDir the directory with CNI plugins.
	busybox, cniDir string
	// etcd is the machine's etcd if it is new enough for the release, else "".
	etcd string
}

// requirement is a program and the Debian package that contains it.
type requirement struct{ program, pkg string }

func commonPrograms() []requirement {
	return []requirement{
		{"containerd", "containerd"}, {"ctr", "containerd"}, {"containerd-shim-runc-v2", "containerd"},
		{"runc", "runc"},
		{"iptables", "iptables"}, {"iptables-save", "iptables"}, {"iptables-restore", "iptables"},
		{"ip", "iproute2"},
		{"mount", "mount"}, {"umount", "mount"}, {"nsenter", "util-linux"}, {"unshare", "util-linux"},
	}
}

func (l *Lab) requiredPrograms() []requirement {
	switch {
	case l.balanced():
		return append(commonPrograms(), requirement{balancer, "haproxy"})
	case l.state.Masters > 1:
		return append(commonPrograms(), requirement{keeper, "keepalived"})
	}
	return commonPrograms()
}

// MissingError is returned when the machine lacks something that a lab needs.
type MissingError struct {
	// Missing lists the missing programs and privileges, Packages the Debian packages to install.
	Missing, Packages []string
}

func (e *MissingError) Error() string {
	return "this machine cannot run a lab; missing: " + strings.Join(e.Missing, ", ")
}

// Hint returns the command that installs the missing packages.
func (e *MissingError) Hint() string {
	if len(e.Packages) == 0 {
		return ""
	}
	return "apt-get install -y --no-install-recommends " + strings.Join(e.Packages, " ")
}

// places are the directories to search, and the user ID.
type places struct {
	path    string
	plugins []string
	root    bool
}

func thisMachine(env []string) places {
	return places{
		path:    systemPath(lookup(env, "PATH")),
		plugins: []string{"/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni"},
		root:    os.Geteuid() == 0,
	}
}

func inspectMachine(r versions.Release, needed []requirement, at places) (machine, error) {
	m := machine{path: at.path}
	var e MissingError
	add := func(what, pkg string) {
		e.Missing = append(e.Missing, what)
		if pkg != "" && !slices.Contains(e.Packages, pkg) {
			e.Packages = append(e.Packages, pkg)
		}
	}
	if !at.root {
		add("root privileges (to create namespaces and cgroups)", "")
	}
	for _, n := range needed {
		if findProgram(m.path, n.program) == "" {
			add(n.program, n.pkg)
		}
	}
	if m.cniDir = findPlugins(at.plugins); m.cniDir == "" {
		add("CNI plugins ("+strings.Join(pluginsOfNetwork(), ", ")+")", "containernetworking-plugins")
	}
	m.busybox = findProgram(m.path, "busybox")
	switch {
	case m.busybox == "":
		add("busybox", "busybox-static")
	case !isStatic(m.busybox):
		add("a static busybox ("+m.busybox+" needs shared libraries)", "busybox-static")
	}
	if _, err := machineHierarchies(); err != nil {
		add("cgroups (nothing is mounted at /sys/fs/cgroup)", "")
	}
	if r.Rules().Etcd34 {
		m.etcd = findProgram(m.path, "etcd")
	}
	if len(e.Missing) > 0 {
		return m, &e
	}
	return m, nil
}

// systemPath adds to PATH the directories of the system's programs, which a user's PATH often
// lacks.
func systemPath(path string) string {
	for _, dir := range []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"} {
		if !slices.Contains(filepath.SplitList(path), dir) {
			path = strings.TrimPrefix(path+":"+dir, ":")
		}
	}
	return path
}

func findProgram(path, name string) string {
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}

func findPlugins(dirs []string) string {
	for _, dir := range dirs {
		if !slices.ContainsFunc(pluginsOfNetwork(), func(name string) bool { return findProgram(dir, name) == "" }) {
			return dir
		}
	}
	return ""
}

func isStatic(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return !slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
}

// linkOrCopy links a program to another path, or copies it if it cannot be linked.
func linkOrCopy(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if os.Link(from, to) == nil {
		return nil
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, data, 0o755); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	return nil
}
