// Package certificates makes the certificates of one extender: an authority of its own, which signs nothing else and is
// never the cluster's, the serving certificate, and the one by which the scheduler shows who it is.
//
// It does no I/O; what was made before is handed in, and what is still good is kept.
package certificates

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
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

// Pair is a certificate with its private key, both PEM.
type Pair struct{ Cert, Key []byte }

// String never shows the key.
func (p Pair) String() string { return fmt.Sprintf("certificate of %d bytes", len(p.Cert)) }

// GoString is String, so that %#v shows no key either.
func (p Pair) GoString() string { return p.String() }

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
	ca, key, err := parse(live.CA)
	if err != nil || !ca.IsCA || r.Now.Add(renewBefore+leafLife).After(ca.NotAfter) {
		made = append(made, "certificate authority")
		if live.CA, err = authority(r); err != nil {
			return Set{}, nil, err
		}
		if ca, key, err = parse(live.CA); err != nil {
			return Set{}, nil, err
		}
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
		if good(*leaf.pair, ca, leaf.template, r.Now) {
			continue
		}
		made = append(made, leaf.what)
		if *leaf.pair, err = sign(leaf.template, ca, key, r.Now); err != nil {
			return Set{}, nil, fmt.Errorf("make the %s of extender %s: %w", leaf.what, r.Name, err)
		}
	}
	return live, made, nil
}

// good reports whether a certificate can stay.
func good(p Pair, ca *x509.Certificate, want x509.Certificate, now time.Time) bool {
	cert, _, err := parse(p)
	if err != nil || cert.CheckSignatureFrom(ca) != nil || now.Before(cert.NotBefore) || now.Add(renewBefore).After(cert.NotAfter) {
		return false
	}
	same := func(a, b net.IP) bool { return a.Equal(b) }
	return slices.Equal(cert.DNSNames, want.DNSNames) && slices.EqualFunc(cert.IPAddresses, want.IPAddresses, same) &&
		slices.Equal(cert.ExtKeyUsage, want.ExtKeyUsage) && cert.Subject.CommonName == want.Subject.CommonName
}

func authority(r Request) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("make a key: %w", err)
	}
	template := x509.Certificate{
		Subject: pkix.Name{CommonName: "pmk-sched-extender-" + r.Name}, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: r.Now.Add(-backdate), NotAfter: r.Now.Add(authorityLife),
	}
	return encode(&template, &template, key, key)
}

func sign(template x509.Certificate, ca *x509.Certificate, caKey *ecdsa.PrivateKey, now time.Time) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("make a key: %w", err)
	}
	template.KeyUsage, template.NotBefore, template.NotAfter = x509.KeyUsageDigitalSignature, now.Add(-backdate), now.Add(leafLife)
	return encode(&template, ca, key, caKey)
}

// serialBits is the size of a serial number: random, and positive.
const serialBits = 127

func encode(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) (Pair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return Pair{}, fmt.Errorf("make a serial number: %w", err)
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return Pair{}, fmt.Errorf("sign %s: %w", template.Subject.CommonName, err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("write a key: %w", err)
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}),
	}, nil
}

// parse reads a pair, whose halves have to belong together.
func parse(p Pair) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	if len(bytes.TrimSpace(p.Cert)) == 0 {
		return nil, nil, errors.New("there is no certificate")
	}
	both, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		return nil, nil, err
	}
	key, ok := both.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, nil, fmt.Errorf("the key is a %T", both.PrivateKey)
	}
	return both.Leaf, key, nil
}
