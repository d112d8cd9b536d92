//go:build linux

package lab

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/test/golden"
	"github.com/pmk-sched/pmk-sched/versions"
)

// named are credentials whose content is their name.
func named() credentials {
	pair := func(name string) certificates.Pair {
		return certificates.Pair{Cert: []byte("certificate of " + name + "\n"), Key: []byte("key of " + name + "\n")}
	}
	return credentials{
		ca: pair("ca"), frontProxyCA: pair("front proxy ca"), serviceAccount: pair("service accounts"),
		apiServer: pair("api server"), kubeletServer: pair("kubelet serving"),
		kubeletClient: pair("kubelet client"), frontProxyClient: pair("front proxy client"),
		admin: pair("admin"), scheduler: pair("scheduler"), manager: pair("controller manager"),
		kubelet: pair("kubelet"), proxy: pair("kube-proxy"), etcdPeer: pair("etcd's peers"),
		etcdClient: pair("etcd's client"), etcdCA: pair("etcd ca"),
	}
}

// exampleLab is a lab with a network.
func exampleLab(t *testing.T, layout, release string, masters, workers int) *Lab {
	t.Helper()
	r, err := versions.Parse(release)
	if err != nil {
		t.Fatal(err)
	}
	return &Lab{dir: "/var/lib/labs/demo", state: state{
		Name: "demo", Release: r, Layout: layout, Masters: masters, Workers: workers, Subnet: "198.18.3.0/24",
	}}
}

func exampleNode(t *testing.T, release string) nodeConfig {
	t.Helper()
	lab := exampleLab(t, LayoutPMK, release, 1, 0)
	rules, err := versions.Select(lab.Release())
	if err != nil {
		t.Fatal(err)
	}
	n := lab.first().config(rules)
	n.keys = named()
	return n
}

func TestFilesOfNode(t *testing.T) {
	l := pmkLayout()
	for _, release := range []string{"v1.21.3", "v1.37.1"} {
		t.Run(release, func(t *testing.T) {
			n := exampleNode(t, release)
			files, err := l.allFiles(n)
			if err != nil {
				t.Fatal(err)
			}
			byPath := map[string]file{}
			for _, f := range files {
				if _, twice := byPath[f.path]; twice {
					t.Errorf("%s is written twice", f.path)
				}
				byPath[f.path] = f
			}
			var b strings.Builder
			fmt.Fprintf(&b, "kubelet: %s\n\n", strings.Join(kubeletDaemon(l, n).argv, " "))
			for _, path := range sortedKeys(byPath) {
				f := byPath[path]
				fmt.Fprintf(&b, "-- %s %04o --\n%s\n", path, f.mode, f.data)
			}
			golden.Equal(t, "testdata/pmk-"+release+".txt", b.String())
		})
	}
}

func TestFilesWithKeysAreReadableByRootOnly(t *testing.T) {
	files, err := pmkLayout().allFiles(exampleNode(t, "v1.24.3"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		holds := strings.Contains(string(f.data), "key of ") || strings.Contains(string(f.data), "client-key-data")
		if holds && f.mode != 0o600 {
			t.Errorf("%s contains a key and has mode %04o", f.path, f.mode)
		}
	}
}

func TestScripts(t *testing.T) {
	l := exampleLab(t, LayoutKubeadm, "v1.24.3", 2, 1)
	subnet := netip.MustParsePrefix(l.state.Subnet)
	for name, hs := range map[string][]hierarchy{
		"v1": {
			{path: "/sys/fs/cgroup/cpu,cpuacct", options: "cpu,cpuacct"},
			{path: "/sys/fs/cgroup/cpuset", options: "cpuset", cpuset: true},
			{path: "/sys/fs/cgroup/systemd", options: "none,name=systemd"},
			{path: "/sys/fs/cgroup/unified", v2: true},
		},
		"v2": {{path: "/sys/fs/cgroup", v2: true}},
	} {
		t.Run(name, func(t *testing.T) {
			n, network := l.Nodes()[1], l.network()
			d := n.scripts(group{name: n.cgroup, hierarchies: hs}, subnet, []string{"/var/lib/labs", "/root/.cache/it's"})
			d.TreeLinks = nil
			if name == "v1" {
				d.TreeLinks = map[string]string{"/sys/fs/cgroup/cpu": "cpu,cpuacct"}
			}
			var b strings.Builder
			for _, s := range []struct {
				host, script string
				data         scriptData
			}{
				{"network", networkScript, l.networkScripts(group{name: network.cgroup, hierarchies: hs}, subnet)},
				{"node", nodeScript, d},
			} {
				all, err := scripts(s.script, s.data)
				if err != nil {
					t.Fatal(err)
				}
				for _, file := range sortedKeys(all) {
					fmt.Fprintf(&b, "-- %s: %s --\n%s\n", s.host, file, all[file])
				}
			}
			golden.Equal(t, "testdata/scripts-"+name+".txt", b.String())
		})
	}
}

func TestDaemons(t *testing.T) {
	var b strings.Builder
	for _, d := range []daemon{
		etcdDaemon("etcd", nodeConfig{}), etcdDaemon("etcd", exampleLab(t, LayoutPMK, "v1.24.3", 3,
			0).Nodes()[1].config(versions.Rules{})), containerdDaemon(), proxyDaemon("kube-proxy"),
		kwokDaemon("kwok", "admin.conf", "kwok.yaml", "198.18.3.2"), keeperDaemon(),
	} {
		fmt.Fprintf(&b, "%s: %s\n", d.name, strings.Join(d.argv, " "))
	}
	golden.Equal(t, "testdata/daemons.txt", b.String())
}
