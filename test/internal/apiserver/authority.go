//go:build linux

package apiserver

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
)

// NewAuthority returns a certificate authority that is valid for a day.
func NewAuthority(t testing.TB) *certificates.Authority {
	t.Helper()
	authority, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

func newAuthority() (*certificates.Authority, error) {
	now := time.Now()
	return certificates.NewAuthority(x509.Certificate{
		Subject: pkix.Name{CommonName: "kubernetes"}, KeyUsage: x509.KeyUsageCertSign, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(24 * time.Hour),
	})
}
