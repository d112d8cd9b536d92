package apiserver

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
)

// store is the access to etcd. etcd, kube-apiserver and this process have one key, which is made
// for the run, and authenticate each other with it: the machine's other users reach the port and
// have no certificate.
type store struct {
	url string
	// certFile has the certificate, which is its own authority, and keyFile the key.
	certFile, keyFile string
	client            *http.Client
}

// newStore makes a key and its certificate for loopback addresses, and writes both to a private
// directory.
func newStore(dir string, client, peers string) (store, error) {
	s := store{
		url: "https://" + client, certFile: filepath.Join(dir, "etcd.crt"), keyFile: filepath.Join(dir, "etcd.key"),
	}
	begin := time.Now().Add(-time.Hour)
	template := x509.Certificate{
		Subject: pkix.Name{CommonName: "pmk-sched-etcd"}, NotBefore: begin, NotAfter: begin.AddDate(10, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		// etcd's gateway is an etcd client, with the same certificate.
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, address := range []string{client, peers} {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return s, fmt.Errorf("make the certificate of etcd: %w", err)
		}
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(host))
	}
	pair, err := certificates.NewAuthority(template)
	if err != nil {
		return s, err
	}
	certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return s, fmt.Errorf("make the certificate of etcd: %w", err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(certificate.Leaf)
	s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		Certificates: []tls.Certificate{certificate}, RootCAs: trusted, MinVersion: tls.VersionTLS12,
	}}}
	return s, errors.Join(os.WriteFile(s.certFile, pair.Cert, 0o600), os.WriteFile(s.keyFile, pair.Key, 0o600))
}

// flags returns the flags for an etcd without other members, at the address and the address for
// members.
func (s store) flags(peers string) []string {
	peer := "https://" + peers
	flags := []string{
		"--listen-client-urls=" + s.url, "--advertise-client-urls=" + s.url, "--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer, "--initial-cluster=default=" + peer,
	}
	for _, of := range []string{"--", "--peer-"} {
		flags = append(flags, of+"client-cert-auth", of+"trusted-ca-file="+s.certFile, of+"cert-file="+s.certFile,
			of+"key-file="+s.keyFile)
	}
	return flags
}
