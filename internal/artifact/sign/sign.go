// Package sign makes and verifies signed statements about images: an ECDSA signature over an
// in-toto statement in a DSSE envelope, in a Sigstore bundle's JSON. cosign verifies it with the
// public key and without a network.
//
// The formats: in-toto Statement v1 (in-toto/attestation, spec/v1/statement.md), DSSE v1
// (secure-systems-lab/dsse, protocol.md and envelope.md), Sigstore bundle v0.3
// (sigstore/protobuf-specs, sigstore_bundle.proto, in its JSON form).
//
// It does no I/O, except that [Command] runs a program of the user. Statements, bundles and keys
// are untrusted input until [Verify] returns.
package sign

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// BundleType is a bundle's media type, and the artifact type of a manifest that has one.
const BundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"

// The types of predicates.
const (
	// Signature says that the owner of the key releases the image. The predicate has [Claims]; the one
	// of cosign has none (sigstore/cosign, pkg/types/predicate.go).
	Signature = "https://sigstore.dev/cosign/sign/v1"
	// SBOM is a CycloneDX document.
	SBOM = "https://cyclonedx.org/bom"
	// Provenance is a SLSA provenance v1.
	Provenance = "https://slsa.dev/provenance/v1"
)

const (
	statementType = "https://in-toto.io/Statement/v1"
	payloadType   = "application/vnd.in-toto+json"
)

// MaxBundle is the size in bytes up to which a bundle is read. The SBOM of a kube-scheduler with
// 300 modules has 150 KiB.
const MaxBundle = 8 << 20

// Statement is an in-toto statement: a predicate about files or images.
type Statement struct {
	Type          string          `json:"_type"`
	Subject       []Subject       `json:"subject"`
	PredicateType string          `json:"predicateType"`
	Predicate     json.RawMessage `json:"predicate"`
}

// Claims are what a signature says about its image. An empty field says nothing.
type Claims struct {
	// Name is the canonical name of the repository for which the image is released.
	Name string `json:"name,omitempty"`
	// Release is the Kubernetes release of the image's kube-scheduler: "v1.24.3".
	Release string `json:"release,omitempty"`
}

// Claims returns the claims in a signature's predicate. cosign's has no predicate.
func (s *Statement) Claims() (c Claims, err error) {
	if len(s.Predicate) == 0 {
		return c, nil
	}
	if err = json.Unmarshal(s.Predicate, &c); err != nil {
		err = fmt.Errorf("read the predicate of the signature: %w", err)
	}
	return c, err
}

// Subject is an image that a statement is about, by digest.
type Subject struct {
	Name   string            `json:"name,omitempty"`
	Digest map[string]string `json:"digest"`
}

// NewStatement returns a statement about an image. digest is hexadecimal SHA-256. If predicate is
// nil, it is empty.
func NewStatement(predicateType, digest string, predicate json.RawMessage) *Statement {
	if predicate == nil {
		predicate = json.RawMessage("{}")
	}
	return &Statement{
		Type: statementType, PredicateType: predicateType, Predicate: predicate,
		Subject: []Subject{{Digest: map[string]string{"sha256": digest}}},
	}
}

// IsAbout reports whether the statement has a predicate of the type about the image with the
// digest, which is hexadecimal SHA-256.
func (s *Statement) IsAbout(predicateType, digest string) bool {
	if s.PredicateType != predicateType || digest == "" {
		return false
	}
	for _, subject := range s.Subject {
		if subject.Digest["sha256"] == digest {
			return true
		}
	}
	return false
}

type bundle struct {
	MediaType            string       `json:"mediaType"`
	VerificationMaterial material     `json:"verificationMaterial"`
	DSSEEnvelope         *dsseContent `json:"dsseEnvelope"`
}

type material struct {
	PublicKey *keyHint `json:"publicKey,omitempty"`
}

type keyHint struct {
	Hint string `json:"hint"`
}

// dsseContent is a DSSE envelope.
type dsseContent struct {
	Payload     []byte          `json:"payload"`
	PayloadType string          `json:"payloadType"`
	Signatures  []dsseSignature `json:"signatures"`
}

type dsseSignature struct {
	Sig []byte `json:"sig"`
}

// Sign returns the bundle of a statement that the signer signed. The same statement and the same
// [PrivateKey] give the same bytes.
func Sign(ctx context.Context, signer Signer, s *Statement) ([]byte, error) {
	payload, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode statement: %w", err)
	}
	digest := encodingDigest(payload)
	signature, err := signer.Sign(ctx, digest)
	if err != nil {
		return nil, err
	}
	key := signer.Public()
	if !key.verify(digest, signature) {
		return nil, fmt.Errorf("sign: the signature does not fit the public key %s", key.Hint())
	}
	text, err := json.Marshal(bundle{
		MediaType: BundleType, VerificationMaterial: material{PublicKey: &keyHint{Hint: key.Hint()}},
		DSSEEnvelope: &dsseContent{
			Payload: payload, PayloadType: payloadType, Signatures: []dsseSignature{{Sig: signature}},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("encode bundle: %w", err)
	}
	if len(text) > MaxBundle {
		return nil, fmt.Errorf("encode bundle: it has %d bytes, the limit is %d", len(text), MaxBundle)
	}
	return text, nil
}

// Verify returns the statement in a bundle if the key signed it. It does not check whether the
// statement is about a certain image or of a certain type: see [Statement.IsAbout].
func Verify(key *PublicKey, text []byte) (*Statement, error) {
	if len(text) > MaxBundle {
		return nil, fmt.Errorf("read bundle: it has %d bytes, the limit is %d", len(text), MaxBundle)
	}
	b := bundle{}
	if err := json.Unmarshal(text, &b); err != nil {
		return nil, fmt.Errorf("read bundle: %w", err)
	}
	envelope := b.DSSEEnvelope
	switch {
	case b.MediaType != BundleType:
		return nil, fmt.Errorf("read bundle: expected %s, got %.100q", BundleType, b.MediaType)
	case envelope == nil:
		return nil, fmt.Errorf("read bundle: it has no dsseEnvelope")
	case envelope.PayloadType != payloadType:
		return nil, fmt.Errorf("read bundle: expected a payload of type %s, got %.100q", payloadType, envelope.PayloadType)
	case len(envelope.Signatures) != 1:
		return nil, fmt.Errorf("read bundle: expected one signature, got %d", len(envelope.Signatures))
	case !key.verify(encodingDigest(envelope.Payload), envelope.Signatures[0].Sig):
		return nil, fmt.Errorf("verify bundle: it is not signed by the key %s%s", key.Hint(), b.signedBy(key))
	}
	s := &Statement{}
	if err := json.Unmarshal(envelope.Payload, s); err != nil {
		return nil, fmt.Errorf("read statement: %w", err)
	}
	if s.Type != statementType {
		return nil, fmt.Errorf("read statement: expected %s, got %.100q", statementType, s.Type)
	}
	return s, nil
}

// signedBy returns the hint of another key for an error. Only a hint that looks like a digest is
// returned: other programs write any text.
func (b *bundle) signedBy(key *PublicKey) string {
	hint := b.VerificationMaterial.PublicKey
	if hint == nil || hint.Hint == key.Hint() {
		return ""
	}
	digest, err := base64.StdEncoding.DecodeString(hint.Hint)
	if err != nil || len(digest) != hashSize {
		return ""
	}
	return ", but names the key " + hint.Hint
}
