//go:build linux

package lab

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/golden"
	"github.com/pmk-sched/pmk-sched/versions"
)

func TestHostedControlPlane(t *testing.T) {
	l := exampleLab(t, LayoutHosted, "v1.24.3", 2, 2)
	rules, err := versions.Select(l.Release())
	if err != nil {
		t.Fatal(err)
	}
	u := &bringUp{lab: l, layout: l.layout(), rules: rules}
	at, err := l.balancerAt()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "etcd: %s\n", strings.Join(hostedEtcd("etcd", "/net/etcd", at).argv, " "))
	for _, n := range []*Node{l.masters()[1], l.clusterNodes()[1]} {
		c := n.config(rules)
		c.keys = named()
		fmt.Fprintf(&b, "\n== %s, %s ==\n", n.name, n.role)
		daemons := []daemon{kubeletDaemon(u.layout, c)}
		if !n.hasKubelet() {
			daemons = hostedDaemons(c, func(name string) string { return name })
		}
		for _, d := range daemons {
			fmt.Fprintf(&b, "%s: %s\n", d.name, strings.ReplaceAll(strings.Join(d.argv, " "), supervise, "SUPERVISE"))
		}
		files, err := u.hostedFiles(n, c)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			fmt.Fprintf(&b, "-- %s %04o --\n%s\n", f.path, f.mode, f.data)
			holds := strings.Contains(string(f.data), "key of ") || strings.Contains(string(f.data), "client-key-data")
			if holds && f.mode != 0o600 {
				t.Errorf("%s contains a key and has mode %04o", f.path, f.mode)
			}
		}
	}
	golden.Equal(t, "testdata/hosted.txt", b.String())
}

func TestHostedControlPlaneHasNoRouteToPods(t *testing.T) {
	l := exampleLab(t, LayoutHosted, "v1.24.3", 2, 2)
	for _, n := range l.Nodes() {
		var pods []string
		for _, other := range n.scripts(group{}, netip.MustParsePrefix(l.state.Subnet), nil).Nodes {
			if other.Pods != "" {
				pods = append(pods, other.Host)
			}
		}
		want := ""
		if n.hasKubelet() {
			want = "demo-worker-1 demo-worker-2"
		}
		if got := strings.Join(pods, " "); got != want {
			t.Errorf("%s has routes to pods of %q, want %q", n.name, got, want)
		}
	}
}

func TestHostedLabHasWorkersWithoutBeingAsked(t *testing.T) {
	u, err := newBringUp(Options{Release: mustRelease(t, "v1.24.3"), Layout: LayoutHosted, StateDir: t.TempDir(),
		CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(u.lab.clusterNodes()); got != 2 {
		t.Errorf("%d workers", got)
	}
}

func mustRelease(t *testing.T, name string) versions.Release {
	t.Helper()
	r, err := versions.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
