//go:build linux

package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/versions"
)

func release(t *testing.T, s string) versions.Release {
	t.Helper()
	r, err := versions.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func isInvalid(err error) bool {
	var e interface{ Invalid() bool }
	return errors.As(err, &e) && e.Invalid()
}

func TestUpRefusesInvalidOptionsWithoutChanges(t *testing.T) {
	dir := shortDir(t)
	good := Options{Name: "demo", Release: release(t, "v1.24.3"), StateDir: filepath.Join(dir, "labs"),
		CacheDir: filepath.Join(dir, "cache")}
	for name, c := range map[string]struct {
		change func(*Options)
		says   string
	}{
		"name with capitals":       {func(o *Options) { o.Name = "Demo" }, "DNS label"},
		"name with dots":           {func(o *Options) { o.Name = "../x" }, "DNS label"},
		"long name":                {func(o *Options) { o.Name = strings.Repeat("x", 31) }, "30 characters"},
		"unknown layout":           {func(o *Options) { o.Layout = "k3s" }, `layout "k3s"`},
		"release that is too old":  {func(o *Options) { o.Release = release(t, "v1.19.0") }, "v1.19.0"},
		"negative workers":         {func(o *Options) { o.Nodes = -1 }, "-1 workers"},
		"too many workers":         {func(o *Options) { o.Nodes = 5001 }, "5001 workers"},
		"relative state directory": {func(o *Options) { o.StateDir = "labs" }, "absolute path"},
		"state directory in /run":  {func(o *Options) { o.StateDir = "/run/labs" }, "/run"},
		"blank in the directory":   {func(o *Options) { o.CacheDir = "/tmp/a b" }, "blanks"},
		"long state directory":     {func(o *Options) { o.StateDir = "/" + strings.Repeat("x", 80) }, "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			c.change(&o)
			_, err := Up(t.Context(), o)
			if err == nil || !isInvalid(err) {
				t.Fatalf("want an error about the input, got %v", err)
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %q does not contain %q", err, c.says)
			}
			if _, err := os.Stat(good.StateDir); err == nil {
				t.Error("Up created the state directory")
			}
		})
	}
}

func TestAnEvenNumberOfEtcdMembersIsWarnedAbout(t *testing.T) {
	for masters, want := range map[int]string{1: "", 3: "", 2: "on 2 control-plane nodes survives the loss of 0 of them",
		4: "on 4 control-plane nodes survives the loss of 1 of them, as on 3"} {
		got := strings.Join(Options{Masters: masters, Layout: LayoutKubeadm}.Warnings(), "\n")
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%d control-plane nodes: got %q, want %q", masters, got, want)
		}
	}
	if got := (Options{Masters: 2, Layout: LayoutHosted}).Warnings(); got != nil {
		t.Errorf("a hosted lab has one etcd: got %q", got)
	}
}

// shortDir is a temporary directory whose path is short enough for sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lab")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestUpRefusesExistingName(t *testing.T) {
	dir := shortDir(t)
	if err := os.MkdirAll(filepath.Join(dir, "demo"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Up(t.Context(), Options{Name: "demo", Release: release(t, "v1.24.3"), StateDir: dir, CacheDir: dir})
	if !errors.Is(err, ErrExists) || !isInvalid(err) {
		t.Fatalf("want ErrExists, got %v", err)
	}
}

func TestMissingLabs(t *testing.T) {
	dir := t.TempDir()
	if err := Down(t.Context(), dir, "demo", nil); !errors.Is(err, ErrNotFound) || !isInvalid(err) {
		t.Errorf("Down: want ErrNotFound, got %v", err)
	}
	if _, err := Get(dir, "demo"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Get: want ErrNotFound, got %v", err)
	}
	if labs, err := List(filepath.Join(dir, "none")); err != nil || len(labs) != 0 {
		t.Errorf("List: %v, %v", labs, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "other"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Get(dir, "demo")
	var hint interface{ Hint() string }
	if !errors.As(err, &hint) || !strings.Contains(hint.Hint(), "other") {
		t.Errorf("error does not list the existing labs: %v", err)
	}
}

func TestStateIsReadBack(t *testing.T) {
	dir := t.TempDir()
	l := &Lab{dir: filepath.Join(dir, "demo"), state: state{Name: "demo", Release: release(t, "v1.24.3"),
		Layout: LayoutKubeadm, Nodes: 3, Subnet: "198.18.7.0/24", Ready: true}}
	if err := os.Mkdir(l.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := l.save(); err != nil {
		t.Fatal(err)
	}
	again, err := Get(dir, "demo")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(l.state, again.state); diff != "" {
		t.Error(diff)
	}
	name, err := again.NodeName()
	if err != nil || name != "demo" {
		t.Errorf("node %q, %v", name, err)
	}
	again.state.Layout = LayoutPMK
	if name, err := again.NodeName(); err != nil || name != "198.18.7.2" {
		t.Errorf("a PMK node is named by its address: %q, %v", name, err)
	}
}

func TestNodesHaveNamesAndNetworksOfTheirOwn(t *testing.T) {
	l := exampleLab(t, LayoutKubeadm, "v1.24.3", 3, 2)
	var got []string
	for _, n := range l.Nodes() {
		got = append(got, fmt.Sprint(n.Name(), " ", n.Role(), " ", n.Address(), " ", n.pods, " ", n.dir, " ", n.cgroup, " ",
			hardwareAddress(n.address)))
	}
	group := groupName(l.dir)
	want := []string{
		"demo control-plane 198.18.3.2 10.244.0.0/24 /var/lib/labs/demo/cp1 " + group + "/cp1 02:00:c6:12:03:02",
		"demo-2 control-plane 198.18.3.3 10.244.1.0/24 /var/lib/labs/demo/cp2 " + group + "/cp2 02:00:c6:12:03:03",
		"demo-3 control-plane 198.18.3.4 10.244.2.0/24 /var/lib/labs/demo/cp3 " + group + "/cp3 02:00:c6:12:03:04",
		"demo-worker-1 worker 198.18.3.12 10.244.10.0/24 /var/lib/labs/demo/w1 " + group + "/w1 02:00:c6:12:03:0c",
		"demo-worker-2 worker 198.18.3.13 10.244.11.0/24 /var/lib/labs/demo/w2 " + group + "/w2 02:00:c6:12:03:0d",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n, err := l.Node("demo-3"); err != nil || n.port() != "cp3" {
		t.Errorf("node demo-3: %v, %v", n, err)
	}
	if _, err := l.Node("demo-4"); !isInvalid(err) {
		t.Errorf("a node that does not exist: %v", err)
	}
}

func TestChooseSubnet(t *testing.T) {
	p := netip.MustParsePrefix
	pools := []netip.Prefix{p("198.18.0.0/15"), p("10.213.0.0/16")}
	for name, c := range map[string]struct {
		used []netip.Prefix
		want string
	}{
		"nothing used":                {nil, "198.18.0.0/24"},
		"first two used":              {[]netip.Prefix{p("198.18.0.0/24"), p("198.18.1.0/24")}, "198.18.2.0/24"},
		"an address inside":           {[]netip.Prefix{p("198.18.0.200/32")}, "198.18.1.0/24"},
		"half of the first pool":      {[]netip.Prefix{p("198.18.0.0/16")}, "198.19.0.0/24"},
		"a route around a whole pool": {[]netip.Prefix{p("198.0.0.0/8")}, "10.213.0.0/24"},
		"everything":                  {[]netip.Prefix{p("198.0.0.0/8"), p("10.0.0.0/8")}, ""},
		"only the rest of the last one": {[]netip.Prefix{p("198.0.0.0/8"), p("10.213.0.0/17"), p("10.213.128.0/18"),
			p("10.213.192.0/19"), p("10.213.224.0/20"), p("10.213.240.0/21"), p("10.213.248.0/22"), p("10.213.252.0/23"),
			p("10.213.254.0/24")}, "10.213.255.0/24"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := chooseSubnet(pools, c.used)
			if c.want == "" {
				if err == nil {
					t.Fatalf("got %s, want an error", got)
				}
				return
			}
			if err != nil || got.String() != c.want {
				t.Errorf("got %s, %v; want %s", got, err, c.want)
			}
		})
	}
}

func TestHierarchies(t *testing.T) {
	for name, c := range map[string]struct {
		mounts string
		want   []hierarchy
	}{
		"version 2": {
			"cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nodev,noexec,relatime,nsdelegate 0 0\n",
			[]hierarchy{{path: "/sys/fs/cgroup", v2: true}},
		},
		"hybrid, as systemd mounts it": {
			"tmpfs /sys/fs/cgroup tmpfs ro,mode=755 0 0\n" +
				"cgroup2 /sys/fs/cgroup/unified cgroup2 rw,nsdelegate 0 0\n" +
				"cgroup /sys/fs/cgroup/systemd cgroup rw,xattr,release_agent=/lib/systemd/systemd-cgroups-agent,name=systemd 0 0\n" +
				"cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,cpu,cpuacct 0 0\n" +
				"cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset,clone_children 0 0\n",
			[]hierarchy{
				{path: "/sys/fs/cgroup/unified", v2: true},
				{path: "/sys/fs/cgroup/systemd", options: "none,name=systemd"},
				{path: "/sys/fs/cgroup/cpu,cpuacct", options: "cpu,cpuacct"},
				{path: "/sys/fs/cgroup/cpuset", options: "cpuset", cpuset: true},
			},
		},
		"mounted twice": {
			"cgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0\ncgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0\n",
			[]hierarchy{{path: "/sys/fs/cgroup/pids", options: "pids"}},
		},
		"none": {"proc /proc proc rw 0 0\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := hierarchies(strings.NewReader(c.mounts))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(hierarchy{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMountsBelow(t *testing.T) {
	mounts := "a /labs/demo tmpfs rw 0 0\nb /labs/demo/x\\040y tmpfs rw 0 0\nc /labs/demo2 tmpfs rw 0 0\nd / ext4 rw 0 0\n"
	got, err := mountsBelow(strings.NewReader(mounts), "/labs/demo")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/labs/demo", "/labs/demo/x y"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestMarkNode(t *testing.T) {
	n := &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{
		{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoSchedule},
		{Key: "node-role.kubernetes.io/master", Value: "true", Effect: corev1.TaintEffectNoSchedule},
	}}}
	l := pmkLayout()
	markNode(n, l.labels, l.taints)
	if len(n.Spec.Taints) != 2 {
		t.Errorf("taints %v", n.Spec.Taints)
	}
	if v, ok := n.Labels["node-role.kubernetes.io/master"]; !ok || v != "" {
		t.Errorf("labels %v", n.Labels)
	}
}

func TestLogTail(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.log")
	if got := logTail(file, 3); got != "" {
		t.Errorf("missing file: %q", got)
	}
	if err := os.WriteFile(file, []byte(strings.Repeat("long line\n", 10000)+"b\nc\nd\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := logTail(file, 2); got != "c\nd" {
		t.Errorf("got %q", got)
	}
}
