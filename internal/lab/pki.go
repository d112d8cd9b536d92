//go:build linux

package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// certificateLifetime is long enough for a lab that is kept, and short enough
// that nobody takes its certificates for more than that.
const certificateLifetime = 365 * 24 * time.Hour

// keyPair is a certificate and its key in PEM.
type keyPair struct{ cert, key []byte }

// authority signs certificates.
type authority struct {
	keyPair
	parsed *x509.Certificate
	signer *ecdsa.PrivateKey
}

// identity is what a certificate says.
type identity struct {
	name   string   // CN: the user
	groups []string // O: the user's groups
	server bool     // for serving, else for a client
	dns    []string
	ips    []net.IP
}

// newAuthority makes a self-signed authority that is valid from now on.
func newAuthority(name string, now time.Time) (*authority, error) {
	signer, key, err := newKey()
	if err != nil {
		return nil, fmt.Errorf("make authority %s: %w", name, err)
	}
	template, err := certificate(identity{name: name}, now)
	if err != nil {
		return nil, fmt.Errorf("make authority %s: %w", name, err)
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	template.ExtKeyUsage = nil
	der, err := x509.CreateCertificate(rand.Reader, template, template, &signer.PublicKey, signer)
	if err != nil {
		return nil, fmt.Errorf("make authority %s: %w", name, err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make authority %s: %w", name, err)
	}
	return &authority{keyPair: keyPair{cert: certPEM(der), key: key}, parsed: parsed, signer: signer}, nil
}

// issue makes a key and a certificate for it.
func (a *authority) issue(id identity, now time.Time) (keyPair, error) {
	signer, key, err := newKey()
	if err != nil {
		return keyPair{}, fmt.Errorf("make certificate for %s: %w", id.name, err)
	}
	template, err := certificate(id, now)
	if err != nil {
		return keyPair{}, fmt.Errorf("make certificate for %s: %w", id.name, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.parsed, &signer.PublicKey, a.signer)
	if err != nil {
		return keyPair{}, fmt.Errorf("make certificate for %s: %w", id.name, err)
	}
	return keyPair{cert: certPEM(der), key: key}, nil
}

func certificate(id identity, now time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	usage := x509.ExtKeyUsageClientAuth
	if id.server {
		usage = x509.ExtKeyUsageServerAuth
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: id.name, Organization: id.groups},
		// A machine whose clock is set back a little still takes it.
		NotBefore:   now.Add(-time.Hour).UTC(),
		NotAfter:    now.Add(certificateLifetime).UTC(),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{usage},
		DNSNames:    id.dns,
		IPAddresses: id.ips,
	}, nil
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(signer)
	if err != nil {
		return nil, nil, err
	}
	return signer, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// serviceAccountKeys makes the pair that signs and checks the tokens of service
// accounts: cert holds the public key.
func serviceAccountKeys() (keyPair, error) {
	signer, key, err := newKey()
	if err != nil {
		return keyPair{}, fmt.Errorf("make service account keys: %w", err)
	}
	der, err := x509.MarshalPKIXPublicKey(&signer.PublicKey)
	if err != nil {
		return keyPair{}, fmt.Errorf("make service account keys: %w", err)
	}
	return keyPair{cert: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), key: key}, nil
}
