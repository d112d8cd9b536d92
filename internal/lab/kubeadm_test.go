//go:build linux

package lab

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/kubeadm"
	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/test/golden"
	"github.com/pmk-sched/pmk-sched/versions"
)

func stepNames(t *testing.T, o Options) []string {
	t.Helper()
	o.Name, o.Release, o.StateDir, o.CacheDir = "demo", release(t, "v1.24.3"), filepath.Join(shortDir(t),
		"labs"), "/var/cache/labs"
	u, err := newBringUp(o)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range u.steps() {
		names = append(names, s.name)
	}
	return names
}

func TestStepsOfAClusterThatKubeadmMakes(t *testing.T) {
	common := []string{"check this machine", "get Kubernetes v1.24.3", "make images", "make namespaces and network",
		"write the nodes' files", "start containerd and load images"}
	for name, c := range map[string]struct {
		options Options
		want    []string
	}{
		"three control-plane nodes": {
			Options{Layout: LayoutKubeadm, Masters: 3, Workers: 1, Nodes: 2},
			[]string{
				"start the load balancer", "create the cluster on demo", "join node demo-2", "join node demo-3",
				"join node demo-worker-1",
				"wait for the control plane", "add 2 workers",
			},
		},
		"one control-plane node": {
			Options{Layout: LayoutKubeadm, Nodes: 2},
			[]string{"create the cluster on demo", "wait for the control plane", "add 2 workers"},
		},
		"one control-plane node and a worker": {
			Options{Layout: LayoutKubeadm, Workers: 1},
			[]string{"create the cluster on demo", "join node demo-worker-1", "wait for the control plane"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(append(common[:len(common):len(common)], c.want...), stepNames(t, c.options)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBalancerConfiguration(t *testing.T) {
	l := exampleLab(t, LayoutKubeadm, "v1.24.3", 3, 1)
	at, err := l.balancerAt()
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/haproxy.txt", string(balancerConfiguration(at, l.masters())))
}

func TestServerOfACluster(t *testing.T) {
	for want, l := range map[string]*Lab{
		"198.18.3.2:6443":   exampleLab(t, LayoutKubeadm, "v1.24.3", 1, 1),
		"198.18.3.254:6443": exampleLab(t, LayoutKubeadm, "v1.24.3", 3, 1),
		"198.18.3.2:443":    exampleLab(t, LayoutPMK, "v1.24.3", 1, 0),
		"198.18.3.253:443":  exampleLab(t, LayoutPMK, "v1.24.3", 3, 0),
	} {
		if got, err := l.server(); err != nil || got != want {
			t.Errorf("%s with %d control-plane nodes: %q, %v", l.Layout(), l.state.Masters, got, err)
		}
	}
}

func TestFilesOfANodeForKubeadm(t *testing.T) {
	l := exampleLab(t, LayoutKubeadm, "v1.24.3", 3, 1)
	l.dir = t.TempDir()
	rules, err := versions.Select(l.Release())
	if err != nil {
		t.Fatal(err)
	}
	u := &bringUp{lab: l, layout: kubeadmLayout(), rules: rules, images: kubeadm.Images{"pause": "k8s.gcr.io/pause:3.7"}}
	n := l.Nodes()[1]
	files, err := u.nodeFiles(n)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.create(); err != nil {
		t.Fatal(err)
	}
	if err := n.writeKubeletScript(); err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile(n.supervisedKubelet().argv[0])
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "-- kubelet --\n%s", strings.ReplaceAll(string(script), l.dir, "/var/lib/labs/demo"))
	for _, f := range files {
		fmt.Fprintf(&b, "-- %s %04o --\n%s\n", f.path, f.mode, f.data)
	}
	golden.Equal(t, "testdata/kubeadm-node.txt", b.String())
}

func TestImagesOfKubeadmHaveUpstreamsNamesAndShape(t *testing.T) {
	dir := t.TempDir()
	write := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(name), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	names, programs := kubeadm.Images{"pause": "k8s.gcr.io/pause:3.7"}, map[string]string{runner: write(runner)}
	for _, name := range kubeadm.Components() {
		names[name], programs[name] = "k8s.gcr.io/"+name+":v1.24.3", write(name)
	}
	var got []string
	for _, i := range kubeadmImages(names, programs, write("pause"), write("busybox")) {
		var files []string
		for _, f := range i.files {
			files = append(files, f.Path)
		}
		got = append(got, fmt.Sprintf("%s %v %v shell=%t master=%t", i.ref, i.entrypoint, files, i.shell, i.master))
	}
	want := []string{
		"localhost/pmk-sched-lab/pause:v1 [/usr/local/bin/pause] [/usr/local/bin/pause] shell=true master=false",
		"localhost/pmk-sched-lab/busybox:v1 [/bin/sh] [/usr/local/bin/busybox] shell=true master=false",
		"k8s.gcr.io/pause:3.7 [/pause] [/pause] shell=true master=false",
		"k8s.gcr.io/etcd:v1.24.3 [] [/usr/local/bin/etcd] shell=false master=true",
		"k8s.gcr.io/kube-apiserver:v1.24.3 [/go-runner] [/usr/local/bin/kube-apiserver /go-runner] shell=false master=true",
		"k8s.gcr.io/kube-controller-manager:v1.24.3 [/go-runner] [/usr/local/bin/kube-controller-manager /go-runner] " +
			"shell=false master=true",
		"k8s.gcr.io/kube-scheduler:v1.24.3 [/go-runner] [/usr/local/bin/kube-scheduler /go-runner] shell=false master=true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// An image without entrypoint and shell, like the etcd image, can be written and has no command.
func TestImageWithoutEntrypoint(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "etcd")
	if err := os.WriteFile(program, []byte("etcd"), 0o755); err != nil {
		t.Fatal(err)
	}
	i := labImage{ref: "k8s.gcr.io/etcd:3.5.3-0", files: []image.File{{Path: "/usr/local/bin/etcd", Source: program}}}
	path, err := i.archive(t.Context(), dir, program)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := i.archive(t.Context(), dir, program); err != nil || again != path {
		t.Errorf("the archive is not reused: %s, %v", again, err)
	}
	platform := build.Host().String()
	built, err := image.Build(t.Context(), image.Options{
		Base: image.Base{Archive: path}, Platforms: []string{platform}, Files: map[string][]image.File{platform: i.files},
	})
	if err != nil {
		t.Fatal(err)
	}
	config, err := built.Images[platform].ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if len(config.Config.Entrypoint)+len(config.Config.Cmd) != 0 {
		t.Errorf("it starts %v %v", config.Config.Entrypoint, config.Config.Cmd)
	}
}

func TestSecretsHaveKubeadmsForm(t *testing.T) {
	one, err := newSecrets()
	if err != nil {
		t.Fatal(err)
	}
	two, err := newSecrets()
	if err != nil {
		t.Fatal(err)
	}
	if one == two {
		t.Error("two labs have the same secrets")
	}
	if !regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`).MatchString(one.token) {
		t.Errorf("token %q", one.token)
	}
	if key, err := hex.DecodeString(one.certificateKey); err != nil || len(key) != 32 {
		t.Errorf("certificate key of %d bytes, %v", len(key), err)
	}
}

// kubeadm's CA has an RSA key up to now; the certificate of kube-proxy is signed with it.
func TestKubeadmsCASignsAndHasAHash(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	pair := certificates.Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
	}
	ca, err := certificates.ParseAuthority(pair)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := ca.Sign(certificate(identity{name: "system:kube-proxy"}, time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(signed.Cert)
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pair.Cert)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	spki, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(spki)
	if got, err := caHash(pair.Cert); err != nil || got != "sha256:"+hex.EncodeToString(sum[:]) {
		t.Errorf("hash %q, %v", got, err)
	}
	if _, err := caHash([]byte("none")); err == nil {
		t.Error("text without a certificate has a hash")
	}
}

func TestUpRefusesNodesThatALayoutCannotHave(t *testing.T) {
	for name, c := range map[string]struct {
		layout           string
		masters, workers int
		says             string
	}{
		"three of PMK":                        {LayoutPMK, 3, 0, ""},
		"too many control-plane nodes of PMK": {LayoutPMK, 8, 0, "8 control-plane nodes"},
		"workers of PMK":                      {LayoutPMK, 3, 1, "no workers with a kubelet"},
		"too many control-plane nodes":        {LayoutKubeadm, 8, 0, "8 control-plane nodes"},
		"too many workers":                    {LayoutKubeadm, 1, 21, "21 workers"},
		"three of kubeadm":                    {LayoutKubeadm, 3, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkNodes(c.layout, c.masters, c.workers)
			if c.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !isInvalid(err) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The addresses of nodes, the load balancer and this machine differ.
func TestAddressesDoNotOverlap(t *testing.T) {
	l := exampleLab(t, LayoutKubeadm, "v1.24.3", maxMasters, maxWorkers)
	subnet := netip.MustParsePrefix(l.state.Subnet)
	seen := map[netip.Addr]bool{addressIn(subnet, machineAddress): true, addressIn(subnet, balancerAddress): true,
		addressIn(subnet, movingAddress): true}
	for _, n := range l.Nodes() {
		if seen[n.address] || !subnet.Contains(n.address) {
			t.Errorf("node %s has the address %s", n.name, n.address)
		}
		seen[n.address] = true
	}
}
