package sign

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

const keyHintText = "make a key with `openssl ecparam -name prime256v1 -genkey -noout -out key.pem` and its public key " +
	"with `openssl pkey -in key.pem -pubout -out pub.pem`; see docs/signing.md"

// Signer signs with a key.
type Signer interface {
	// Public returns the public key.
	Public() *PublicKey
	// Sign returns the ASN.1 DER signature of a SHA-256 digest.
	Sign(ctx context.Context, digest [hashSize]byte) ([]byte, error)
}

// PublicKey is an ECDSA key on the curve P-256, which cosign verifies with SHA-256.
type PublicKey struct {
	key  *ecdsa.PublicKey
	hint string
	text string
}

// ParsePublicKey reads a public key in PEM (PKIX, "PUBLIC KEY"). The errors are Invalid.
func ParsePublicKey(text []byte) (*PublicKey, error) {
	block := firstBlock(text)
	if block == nil {
		return nil, problem.Invalidf(keyHintText, "public key: it is not PEM")
	}
	switch {
	case strings.HasSuffix(block.Type, "PRIVATE KEY"):
		return nil, problem.Invalidf(keyHintText, "public key: expected PUBLIC KEY, got %s: verifying needs no private key",
			block.Type)
	case block.Type != "PUBLIC KEY":
		return nil, problem.Invalidf(keyHintText, "public key: expected PUBLIC KEY, got %.40q", block.Type)
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, problem.Invalidf(keyHintText, "public key: %w", err)
	}
	return newPublicKey(parsed)
}

func newPublicKey(parsed crypto.PublicKey) (*PublicKey, error) {
	key, ok := parsed.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, problem.Invalidf(keyHintText, "expected an ECDSA key on the curve P-256, got %s", describe(parsed))
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, problem.Invalidf(keyHintText, "public key: %w", err)
	}
	sum := sha256.Sum256(der)
	return &PublicKey{
		key: key, hint: base64.StdEncoding.EncodeToString(sum[:]),
		text: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
	}, nil
}

// describe names the kind of a key for an error.
func describe(key any) string {
	if k, ok := key.(*ecdsa.PublicKey); ok {
		return "an ECDSA key on " + k.Curve.Params().Name
	}
	name := strings.TrimPrefix(fmt.Sprintf("%T", key), "*")
	kind, _, _ := strings.Cut(name, ".")
	return "a key of " + kind
}

// Hint identifies the key: the base64-encoded SHA-256 digest of its DER encoding.
func (k *PublicKey) Hint() string { return k.hint }

// PEM returns the key in PEM, the same text for the same key.
func (k *PublicKey) PEM() string { return k.text }

func (k *PublicKey) verify(digest [hashSize]byte, signature []byte) bool {
	return ecdsa.VerifyASN1(k.key, digest[:], signature)
}

// PrivateKey is a Signer with a key in memory.
type PrivateKey struct {
	key    *ecdsa.PrivateKey
	public *PublicKey
}

// ParsePrivateKey reads an unencrypted private key in PEM: PKCS#8 ("PRIVATE KEY") or SEC 1 ("EC
// PRIVATE KEY"). The errors are Invalid and contain nothing of the key.
func ParsePrivateKey(text []byte) (*PrivateKey, error) {
	block := firstBlock(text)
	if block == nil {
		return nil, problem.Invalidf(keyHintText, "private key: it is not PEM")
	}
	var parsed any
	var err error
	switch {
	case strings.Contains(block.Type, "ENCRYPTED") || block.Headers["DEK-Info"] != "":
		return nil, problem.Invalidf("decrypt it with `openssl pkey`, or let a command sign: exec:COMMAND",
			"private key: it is encrypted, and pmk-sched asks for no password")
	case block.Type == "PRIVATE KEY":
		parsed, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case block.Type == "EC PRIVATE KEY":
		parsed, err = x509.ParseECPrivateKey(block.Bytes)
	case block.Type == "PUBLIC KEY":
		return nil, problem.Invalidf(keyHintText, "private key: got a public key, which cannot sign")
	default:
		return nil, problem.Invalidf(keyHintText, "private key: expected PRIVATE KEY or EC PRIVATE KEY, got %.40q", block.Type)
	}
	if err != nil {
		return nil, problem.Invalidf(keyHintText, "private key: the content of %s cannot be read", block.Type)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, problem.Invalidf(keyHintText, "private key: expected an ECDSA key on the curve P-256, got %s",
			describe(parsed))
	}
	public, err := newPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("private key: %w", err)
	}
	return &PrivateKey{key: key, public: public}, nil
}

// firstBlock returns the first PEM block, without the curve that `openssl ecparam` writes first.
func firstBlock(text []byte) *pem.Block {
	rest := bytes.TrimSpace(text)
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != "EC PARAMETERS" {
			return block
		}
	}
}

// Public returns the public key.
func (k *PrivateKey) Public() *PublicKey { return k.public }

// Sign returns a signature that depends on the key and the digest only (RFC 6979): signing an image
// again does not make another signature.
func (k *PrivateKey) Sign(_ context.Context, digest [hashSize]byte) ([]byte, error) {
	signature, err := k.key.Sign(nil, digest[:], crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return signature, nil
}
