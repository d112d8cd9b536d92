package kubeadm

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/golden"
	"github.com/pmk-sched/pmk-sched/versions"
)

// A release for each configuration API and form of the kubelet's configuration.
var releases = []string{"v1.20.15", "v1.24.3", "v1.37.1"}

func cluster(t *testing.T, release string) Cluster {
	t.Helper()
	r, err := versions.Parse(release)
	if err != nil {
		t.Fatal(err)
	}
	return Cluster{
		Release: r, Services: "10.96.0.0/16", Socket: "/run/containerd/containerd.sock", Token: "abcdef.0123456789abcdef",
	}
}

func node(name string, last byte, controlPlane bool) Node {
	return Node{Name: name, Address: netip.AddrFrom4([4]byte{198, 18, 3, last}), ControlPlane: controlPlane}
}

func TestConfigurations(t *testing.T) {
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			single := cluster(t, release)
			several := single
			several.Endpoint, several.CertificateKey = "198.18.3.254:6443", strings.Repeat("0f", 32)
			hash := "sha256:" + strings.Repeat("a1", 32)
			var b strings.Builder
			add := func(title string, text []byte, err error) {
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&b, "-- %s --\n%s", title, text)
			}
			text, err := single.Init(node("demo", 2, true))
			add("init, one control-plane node", text, err)
			text, err = several.Init(node("demo", 2, true))
			add("init, several control-plane nodes", text, err)
			text, err = several.Join(node("demo-2", 3, true), Discovery{Server: several.Endpoint, CAHash: hash})
			add("join, control-plane node", text, err)
			text, err = single.Join(node("demo-worker-1", 12, false), Discovery{Server: "198.18.3.2:6443", CAHash: hash})
			add("join, worker", text, err)
			golden.Equal(t, "testdata/"+release+".txt", b.String())
		})
	}
}

func TestAPIByRelease(t *testing.T) {
	for release, want := range map[string]string{
		"v1.20.0": "v1beta2", "v1.21.14": "v1beta2", "v1.22.2": "v1beta3", "v1.30.14": "v1beta3", "v1.31.0": "v1beta4",
		"v1.37.1": "v1beta4",
	} {
		if got := cluster(t, release).Release.Rules().KubeadmAPI; got != "kubeadm.k8s.io/"+want {
			t.Errorf("%s: %s, want %s", release, got, want)
		}
	}
}

func TestOnlySharedCertificatesAreUploaded(t *testing.T) {
	if got := strings.Join(InitArgs("f", false), " "); got != "init --config=f --skip-phases=preflight,addon" {
		t.Error(got)
	}
	if got := strings.Join(InitArgs("f", true),
		" "); got != "init --config=f --skip-phases=preflight,addon --upload-certs" {
		t.Error(got)
	}
}

func TestUpgradeCommands(t *testing.T) {
	if got := strings.Join(UpgradeApplyArgs(cluster(t, "v1.25.4").Release),
		" "); got != "upgrade apply v1.25.4 --yes --ignore-preflight-errors=all" {
		t.Error(got)
	}
	if got := strings.Join(UpgradeNodeArgs(), " "); got != "upgrade node --ignore-preflight-errors=all" {
		t.Error(got)
	}
}

// The output of kubeadm v1.24.3 and of v1.37.1.
func TestParseImages(t *testing.T) {
	for list, want := range map[string]struct{ apiServer, pause, etcd string }{
		"k8s.gcr.io/kube-apiserver:v1.24.3\nk8s.gcr.io/kube-controller-manager:v1.24.3\nk8s.gcr.io/kube-scheduler:v1.24.3\n" +
			"k8s.gcr.io/kube-proxy:v1.24.3\nk8s.gcr.io/pause:3.7\nk8s.gcr.io/etcd:3.5.3-0\nk8s.gcr.io/coredns/coredns:v1.8.6\n": {
			"k8s.gcr.io/kube-apiserver:v1.24.3", "k8s.gcr.io/pause:3.7", "v3.5.3",
		},
		"registry.k8s.io/kube-apiserver:v1.37.1\nregistry.k8s.io/kube-controller-manager:v1.37.1\n" +
			"registry.k8s.io/kube-scheduler:v1.37.1\n" +
			"registry.k8s.io/kube-proxy:v1.37.1\nregistry.k8s.io/coredns/coredns:v1.13.1\nregistry.k8s.io/pause:3.10.2\n" +
			"registry.k8s.io/etcd:3.7.0-0\n": {
			"registry.k8s.io/kube-apiserver:v1.37.1", "registry.k8s.io/pause:3.10.2", "v3.7.0",
		},
	} {
		images, err := parseImages(list)
		if err != nil {
			t.Fatal(err)
		}
		if images["kube-apiserver"] != want.apiServer || images["pause"] != want.pause || images.EtcdVersion() != want.etcd {
			t.Errorf("got %v, etcd %s", images, images.EtcdVersion())
		}
	}
	if _, err := parseImages("etcd:1 kube-apiserver:1 kube-controller-manager:1 kube-scheduler:1 pause"); err == nil ||
		!strings.Contains(err.Error(), "no image pause") {
		t.Errorf("an image without a tag: %v", err)
	}
	if _, err := parseImages("k8s.gcr.io/pause:3.7\n"); err == nil || !strings.Contains(err.Error(), "etcd") {
		t.Errorf("an incomplete list: %v", err)
	}
}
