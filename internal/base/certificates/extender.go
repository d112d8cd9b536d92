// Package certificates creates certificate authorities and the certificates they sign.
//
// [Ensure] creates the certificates of one extender: an authority that signs nothing else and is
// never the cluster's, the serving certificate, and the client certificate of the scheduler. The
// package does no I/O: the caller passes existing certificates, and Ensure keeps the certificates
// that are still valid.
package certificates

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"slices"
	"time"
)

const (
	// authorityLife exceeds a cluster's life: a new authority requires a new configuration for each
	// scheduler.
	authorityLife = 20 * 365 * 24 * time.Hour
	// leafLife is the life of the certificates that the authority signs. Only the next deployment
	// renews it.
	leafLife = 5 * 365 * 24 * time.Hour
	// renewBefore is the remaining validity at which a certificate is renewed.
	renewBefore = 365 * 24 * time.Hour
	// backdate allows for clocks that differ.
	backdate = time.Hour
)

// Set contains the certificates of one extender.
type Set struct {
	// CA signs the others. Its key is in a Secret that no pod mounts.
	CA Pair
	// Server is the serving certificate, Client is the client certificate of the scheduler.
	Server, Client Pair
}

// Request describes the extender.
type Request struct {
	// Name of the extender.
	Name string
	// DNS and Addresses are the names in its URLs.
	DNS       []string
	Addresses []net.IP
	// Now is the current time.
	Now time.Time
}

// Ensure returns live after creating the certificates that are missing, do not match the request,
// are not signed by the authority or expire within a year. It also returns the names of the
// certificates created, for messages. A new authority replaces all others.
func Ensure(live Set, r Request) (Set, []string, error) {
	var created []string
	ca, err := ParseAuthority(live.CA)
	if err != nil || r.Now.Add(renewBefore+leafLife).After(ca.cert.NotAfter) {
		created = append(created, "certificate authority")
		if ca, err = authority(r); err != nil {
			return Set{}, nil, fmt.Errorf("create the certificate authority of extender %s: %w", r.Name, err)
		}
		live.CA = ca.Pair
	}
	for _, leaf := range []struct {
		what     string
		pair     *Pair
		template x509.Certificate
	}{
		{"serving certificate", &live.Server, x509.Certificate{
			Subject: pkix.Name{CommonName: r.Name}, DNSNames: r.DNS, IPAddresses: r.Addresses,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}},
		{"client certificate", &live.Client, x509.Certificate{
			Subject:     pkix.Name{CommonName: "scheduler-of-" + r.Name},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}},
	} {
		if matches(*leaf.pair, ca, leaf.template, r.Now) {
			continue
		}
		created = append(created, leaf.what)
		leaf.template.KeyUsage = x509.KeyUsageDigitalSignature
		leaf.template.NotBefore, leaf.template.NotAfter = r.Now.Add(-backdate), r.Now.Add(leafLife)
		if *leaf.pair, err = ca.Sign(leaf.template); err != nil {
			return Set{}, nil, fmt.Errorf("create the %s of extender %s: %w", leaf.what, r.Name, err)
		}
	}
	return live, created, nil
}

// matches reports whether an existing certificate can be kept.
func matches(p Pair, ca *Authority, want x509.Certificate, now time.Time) bool {
	cert, _, err := parse(p)
	if err != nil || cert.CheckSignatureFrom(ca.cert) != nil || now.Before(cert.NotBefore) ||
		now.Add(renewBefore).After(cert.NotAfter) {
		return false
	}
	same := func(a, b net.IP) bool { return a.Equal(b) }
	return slices.Equal(cert.DNSNames, want.DNSNames) && slices.EqualFunc(cert.IPAddresses, want.IPAddresses, same) &&
		slices.Equal(cert.ExtKeyUsage, want.ExtKeyUsage) && cert.Subject.CommonName == want.Subject.CommonName
}

func authority(r Request) (*Authority, error) {
	return NewAuthority(x509.Certificate{
		Subject: pkix.Name{CommonName: "pmk-sched-extender-" + r.Name}, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: r.Now.Add(-backdate), NotAfter: r.Now.Add(authorityLife),
	})
}
