//go:build linux

package lab

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
)

// certificateLifetime is long enough for a lab that is kept for months.
const certificateLifetime = 365 * 24 * time.Hour

type identity struct {
	name   string   // CN: the user
	groups []string // O: the user's groups
	server bool     // for serving
	client bool     // for a client; the default without server
	dns    []string
	ips    []net.IP
}

// newAuthority returns a self-signed CA that is valid from now on.
func newAuthority(name string, now time.Time) (*certificates.Authority, error) {
	template := certificate(identity{name: name}, now)
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	template.ExtKeyUsage = nil
	a, err := certificates.NewAuthority(template)
	if err != nil {
		return nil, fmt.Errorf("create authority %s: %w", name, err)
	}
	return a, nil
}

func certificate(id identity, now time.Time) x509.Certificate {
	var usages []x509.ExtKeyUsage
	if id.server {
		usages = append(usages, x509.ExtKeyUsageServerAuth)
	}
	if id.client || !id.server {
		usages = append(usages, x509.ExtKeyUsageClientAuth)
	}
	return x509.Certificate{
		Subject: pkix.Name{CommonName: id.name, Organization: id.groups},
		// Tolerate a clock that is set back a little.
		NotBefore:   now.Add(-time.Hour).UTC(),
		NotAfter:    now.Add(certificateLifetime).UTC(),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: usages,
		DNSNames:    id.dns,
		IPAddresses: id.ips,
	}
}

// serviceAccountKeys returns the key pair that signs and verifies ServiceAccount tokens: Cert holds
// the public key.
func serviceAccountKeys() (certificates.Pair, error) {
	key, err := certificates.NewKey()
	if err != nil {
		return certificates.Pair{}, fmt.Errorf("create service account keys: %w", err)
	}
	secret, err := certificates.EncodeKey(key)
	if err != nil {
		return certificates.Pair{}, fmt.Errorf("create service account keys: %w", err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return certificates.Pair{}, fmt.Errorf("create service account keys: %w", err)
	}
	return certificates.Pair{Cert: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), Key: secret}, nil
}
