package extender

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
)

// certificate returns a self-signed certificate with its key, for servers and clients.
func certificate(t *testing.T, serial int64) (certPEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "extender"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature |
			x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}

func TestChangedCertificateIsReloadedUnlessInvalid(t *testing.T) {
	dir := t.TempDir()
	first, firstKey := certificate(t, 1)
	second, secondKey := certificate(t, 2)
	files := TLSFiles{CertFile: write(t, dir, "tls.crt", first), KeyFile: write(t, dir, "tls.key", firstKey)}
	now := time.Now()
	c := &certificates{files: files, log: zap.NewNop(), now: func() time.Time { return now }}
	var err error
	if c.current, err = c.load(); err != nil {
		t.Fatal(err)
	}
	serial := func() int64 {
		now = now.Add(checkInterval)
		leaf, err := x509.ParseCertificate(c.latest().Certificates[0].Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		return leaf.SerialNumber.Int64()
	}
	write(t, dir, "tls.crt", second) // its key is not there yet
	if got := serial(); got != 1 {
		t.Errorf("a certificate without its key is used: %d", got)
	}
	write(t, dir, "tls.key", secondKey)
	if got := serial(); got != 2 {
		t.Errorf("the new certificate is not used: %d", got)
	}
	if err := os.Remove(files.CertFile); err != nil {
		t.Fatal(err)
	}
	if got := serial(); got != 2 {
		t.Errorf("the certificate is gone: %d", got)
	}
}

func TestTLSFilesAreValidated(t *testing.T) {
	dir := t.TempDir()
	cert, key := certificate(t, 1)
	_, other := certificate(t, 2)
	certFile, keyFile := write(t, dir, "tls.crt", cert), write(t, dir, "tls.key", key)
	for name, c := range map[string]struct {
		files TLSFiles
		want  string
	}{
		"no key":  {TLSFiles{CertFile: certFile}, "requires a certificate file and a key file"},
		"missing": {TLSFiles{CertFile: certFile, KeyFile: filepath.Join(dir, "none")}, "no such file"},
		"another's key": {TLSFiles{CertFile: certFile, KeyFile: write(t, dir, "other.key", other)},
			"private key does not match"},
		"no authorities": {TLSFiles{CertFile: certFile, KeyFile: keyFile, ClientCAFile: keyFile}, "no certificate found"},
	} {
		if err := Serve(t.Context(), ServeOptions{Listen: "127.0.0.1:0", TLS: c.files}, http.NotFoundHandler()); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
