//go:build linux

package apiserver

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/certificates"
)

// NewAuthority returns a certificate authority that is valid for an hour.
func NewAuthority(t testing.TB) *certificates.Authority {
	t.Helper()
	now := time.Now()
	authority, err := certificates.NewAuthority(x509.Certificate{
		Subject: pkix.Name{CommonName: "kubernetes"}, KeyUsage: x509.KeyUsageCertSign, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	return authority
}
