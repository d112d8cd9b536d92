// Package certificates makes the certificates of one extender: an authority of its own, which signs nothing else and is
// never the cluster's, the serving certificate, and the one by which the scheduler shows who it is.
//
// It does no I/O; what was made before is handed in, and what is still good is kept.
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
	// authorityLife is longer than that of a cluster; a new authority needs a new configuration of each scheduler.
	authorityLife = 20 * 365 * 24 * time.Hour
	// leafLife is that of what the authority signs. Nothing renews it but the next deployment.
	leafLife = 5 * 365 * 24 * time.Hour
	// renewBefore is how long before its end a certificate is renewed.
	renewBefore = 365 * 24 * time.Hour
	// backdate allows for clocks that differ.
	backdate = time.Hour
)

// Set is everything that one extender has.
type Set struct {
	// CA signs the others. Its key stays in the cluster, in a Secret that no pod mounts.
	CA Pair
	// Server is the serving certificate, Client the scheduler's.
	Server, Client Pair
}

// Request says what the certificates are for.
type Request struct {
	// Name of the extender.
	Name string
	// DNS and Addresses are the names by which it is called.
	DNS       []string
	Addresses []net.IP
	// Now is the time against which certificates are judged.
	Now time.Time
}

// Ensure returns live with everything made or made anew that is missing, does not fit the request, is not signed by
// the authority or ends within a year; and what was made, for people. A new authority takes all others with it.
func Ensure(live Set, r Request) (Set, []string, error) {
	var made []string
	ca, err := ParseAuthority(live.CA)
	if err != nil || r.Now.Add(renewBefore+leafLife).After(ca.cert.NotAfter) {
		made = append(made, "certificate authority")
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
			Subject: pkix.Name{CommonName: "scheduler-of-" + r.Name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}},
	} {
		if isGood(*leaf.pair, ca, leaf.template, r.Now) {
			continue
		}
		made = append(made, leaf.what)
		leaf.template.KeyUsage = x509.KeyUsageDigitalSignature
		leaf.template.NotBefore, leaf.template.NotAfter = r.Now.Add(-backdate), r.Now.Add(leafLife)
		if *leaf.pair, err = ca.Sign(leaf.template); err != nil {
			return Set{}, nil, fmt.Errorf("create the %s of extender %s: %w", leaf.what, r.Name, err)
		}
	}
	return live, made, nil
}

// isGood reports whether a certificate can stay.
func isGood(p Pair, ca *Authority, want x509.Certificate, now time.Time) bool {
	cert, _, err := parse(p)
	if err != nil || cert.CheckSignatureFrom(ca.cert) != nil || now.Before(cert.NotBefore) || now.Add(renewBefore).After(cert.NotAfter) {
		return false
	}
	same := func(a, b net.IP) bool { return a.Equal(b) }
	return slices.Equal(cert.DNSNames, want.DNSNames) && slices.EqualFunc(cert.IPAddresses, want.IPAddresses, same) &&
		slices.Equal(cert.ExtKeyUsage, want.ExtKeyUsage) && cert.Subject.CommonName == want.Subject.CommonName
}

// authority returns a new authority for the extender.
func authority(r Request) (*Authority, error) {
	return NewAuthority(x509.Certificate{
		Subject: pkix.Name{CommonName: "pmk-sched-extender-" + r.Name}, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: r.Now.Add(-backdate), NotAfter: r.Now.Add(authorityLife),
	})
}
