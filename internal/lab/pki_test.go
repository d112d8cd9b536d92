//go:build linux

package lab

import (
	"crypto/x509"
	"encoding/pem"
	"net/netip"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
)

func TestCredentialsVerify(t *testing.T) {
	now := time.Now()
	address := netip.MustParseAddr("198.18.3.2")
	shared, err := newAuthorities(now)
	if err != nil {
		t.Fatal(err)
	}
	c, err := shared.credentials(nodeConfig{name: "198.18.3.2", address: address,
		virtual: netip.MustParseAddr("198.18.3.253")}, "demo", now)
	if err != nil {
		t.Fatal(err)
	}
	roots := func(pair certificates.Pair) *x509.CertPool {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pair.Cert)
		return pool
	}
	parse := func(pair certificates.Pair) *x509.Certificate {
		block, _ := pem.Decode(pair.Cert)
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		return cert
	}
	for _, host := range []string{"localhost", "127.0.0.1", "198.18.3.2", "198.18.3.253", "10.96.0.1", "demo",
		"kubernetes.default.svc"} {
		if _, err := parse(c.apiServer).Verify(x509.VerifyOptions{Roots: roots(c.ca), DNSName: host}); err != nil {
			t.Errorf("the API server as %s: %v", host, err)
		}
	}
	if _, err := parse(c.kubeletServer).Verify(x509.VerifyOptions{Roots: roots(c.ca), DNSName: "198.18.3.2"}); err != nil {
		t.Errorf("the kubelet: %v", err)
	}
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	for _, usage := range [][]x509.ExtKeyUsage{client, {x509.ExtKeyUsageServerAuth}} {
		if _, err := parse(c.etcdPeer).Verify(x509.VerifyOptions{Roots: roots(c.ca), DNSName: "198.18.3.2",
			KeyUsages: usage}); err != nil {
			t.Errorf("the member of etcd: %v", err)
		}
	}
	if got := parse(c.etcdPeer).Subject.CommonName; got != etcdPeerName {
		t.Errorf("the member of etcd is %s", got)
	}
	for _, pair := range []certificates.Pair{c.kubeletClient, c.admin, c.scheduler, c.manager, c.kubelet, c.proxy} {
		if _, err := parse(pair).Verify(x509.VerifyOptions{Roots: roots(c.ca), KeyUsages: client}); err != nil {
			t.Errorf("%s: %v", parse(pair).Subject, err)
		}
	}
	if got := parse(c.scheduler).Subject.String(); got != "CN=system:kube-scheduler,O=system:kube-scheduler" {
		t.Errorf("the scheduler is %s", got)
	}
	front := x509.VerifyOptions{Roots: roots(c.ca), KeyUsages: client}
	if _, err := parse(c.frontProxyClient).Verify(front); err == nil {
		t.Error("the front proxy's certificate is from the cluster's authority")
	}
	front.Roots = roots(c.frontProxyCA)
	if _, err := parse(c.frontProxyClient).Verify(front); err != nil {
		t.Errorf("the front proxy: %v", err)
	}
	if d := parse(c.admin).NotAfter.Sub(now); d < 364*24*time.Hour {
		t.Errorf("certificates end in %s", d)
	}
}

func TestKubeconfigIsReadByClients(t *testing.T) {
	data, err := kubeconfig(access{
		server: "https://localhost:443", cluster: "local", user: "admin",
		contexts: []contextName{{"first", "default"}, {"second", "kube-system"}},
		ca:       []byte("ca"), pair: certificates.Pair{Cert: []byte("cert"), Key: []byte("key")},
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := clientcmd.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	if c.CurrentContext != "first" || c.Contexts["second"].Namespace != "kube-system" ||
		string(c.AuthInfos["admin"].ClientKeyData) != "key" {
		t.Errorf("unexpected kubeconfig:\n%s", data)
	}
}
