package certificates

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
)

// Pair is a certificate with its private key, both PEM.
type Pair struct{ Cert, Key []byte }

// String never shows the key.
func (p Pair) String() string { return fmt.Sprintf("certificate of %d bytes", len(p.Cert)) }

// GoString is String, so that %#v shows no key either.
func (p Pair) GoString() string { return p.String() }

// Authority is a certificate authority.
type Authority struct {
	Pair
	cert *x509.Certificate
	key  crypto.Signer
}

// NewAuthority returns a new self-signed authority. The template has everything but the serial
// number and the key.
func NewAuthority(template x509.Certificate) (*Authority, error) {
	key, err := NewKey()
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	pair, err := encode(&template, &template, key, key)
	if err != nil {
		return nil, err
	}
	return ParseAuthority(pair)
}

// ParseAuthority reads an authority, with a key of any kind.
func ParseAuthority(p Pair) (*Authority, error) {
	cert, key, err := parse(p)
	if err == nil && !cert.IsCA {
		err = errors.New("the certificate is not an authority's")
	}
	if err != nil {
		return nil, err
	}
	return &Authority{Pair: p, cert: cert, key: key}, nil
}

// Sign returns a new key and a certificate for it. The template has everything but the serial
// number and the key.
func (a *Authority) Sign(template x509.Certificate) (Pair, error) {
	key, err := NewKey()
	if err != nil {
		return Pair{}, err
	}
	return encode(&template, a.cert, key, a.key)
}

// NewKey returns a new private key.
func NewKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	return key, nil
}

// EncodeKey returns a private key as PEM.
func EncodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// serialBits is the size of a serial number: random and positive.
const serialBits = 127

func encode(template, parent *x509.Certificate, key *ecdsa.PrivateKey, signer crypto.Signer) (Pair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return Pair{}, fmt.Errorf("generate serial number: %w", err)
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return Pair{}, fmt.Errorf("sign %s: %w", template.Subject.CommonName, err)
	}
	secret, err := EncodeKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key: secret}, nil
}

// parse reads a pair. The key must be the certificate's.
func parse(p Pair) (*x509.Certificate, crypto.Signer, error) {
	if len(bytes.TrimSpace(p.Cert)) == 0 {
		return nil, nil, errors.New("the certificate is empty")
	}
	both, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		return nil, nil, err
	}
	key, ok := both.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, nil, fmt.Errorf("the key is a %T, which cannot sign", both.PrivateKey)
	}
	return both.Leaf, key, nil
}
