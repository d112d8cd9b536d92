package pack

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/sign"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// UnsignedError is returned for an image that the key did not sign.
type UnsignedError struct {
	Image string
	// Reasons has one line for each signature of the image that was read.
	Reasons []string
}

// Error lists the reasons.
func (e *UnsignedError) Error() string {
	text := "image " + e.Image + " has no signature of the key"
	if len(e.Reasons) == 0 {
		return text + ": it has none at all"
	}
	return text + ":\n  " + strings.Join(e.Reasons, "\n  ")
}

// Hint returns a suggestion for the user.
func (e *UnsignedError) Hint() string {
	return "sign it when it is built: `pmk-sched build --sign-key KEY --push`; see docs/signing.md"
}

// CheckFailed reports that the image was read, and that it is not signed by the key.
func (e *UnsignedError) CheckFailed() bool { return true }

// VerifySignature verifies that a key signed an image of a registry, and returns its name with the
// digest. key is in PEM. The error is an [UnsignedError] if it did not.
func VerifySignature(ctx context.Context, reference, key string) (string, error) {
	public, err := sign.ParsePublicKey([]byte(key))
	if err != nil {
		return "", err
	}
	stored, err := image.Open(ctx, image.Source{Reference: reference, Keychain: authn.DefaultKeychain})
	if err != nil {
		return "", problem.WithHint(fmt.Errorf("verify the signature of %s: %w", reference, err),
			"signatures are read from the registry of the image")
	}
	a, err := readAttestations(ctx, stored, stored.Digest, public)
	if err != nil {
		return "", err
	}
	if !strings.Contains(reference, "@") {
		reference += "@" + stored.Digest
	}
	return reference, a.requireSignature()
}

// ParseKey reads a public key in PEM, and returns the same key in one form and its identifier:
// base64 of the SHA-256 digest of its DER encoding.
func ParseKey(text []byte) (key, id string, err error) {
	public, err := sign.ParsePublicKey(text)
	if err != nil {
		return "", "", err
	}
	return public.PEM(), public.Hint(), nil
}

// attestations are the statements that are attached to one manifest.
type attestations struct {
	image, digest string
	signed        []*sign.Statement
	// refused has the reason for each bundle that is not a statement of the key about the manifest.
	refused []string
}

// maxReasons bounds the reasons that are listed: anyone who can push to a repository can add some.
const maxReasons = 5

func readAttestations(
	ctx context.Context, stored *image.Stored, digest string, key *sign.PublicKey,
) (*attestations, error) {
	bundles, err := stored.Documents(ctx, digest, sign.BundleType, sign.MaxBundle)
	if err != nil {
		return nil, err
	}
	a := &attestations{image: stored.Name, digest: strings.TrimPrefix(digest, "sha256:")}
	for _, bundle := range bundles {
		statement, err := sign.Verify(key, bundle)
		switch {
		case err == nil && statement.IsAbout(statement.PredicateType, a.digest):
			a.signed = append(a.signed, statement)
			continue
		case err == nil:
			err = fmt.Errorf("verify bundle: its statement is about another image")
		}
		if len(a.refused) < maxReasons {
			a.refused = append(a.refused, err.Error())
		}
	}
	return a, nil
}

// predicates returns the signed predicates of a type.
func (a *attestations) predicates(predicateType string) []json.RawMessage {
	var list []json.RawMessage
	for _, s := range a.signed {
		if s.PredicateType == predicateType {
			list = append(list, s.Predicate)
		}
	}
	return list
}

// requireSignature returns an error unless the image has a signature. A signed SBOM or provenance
// is not one: it says what is in the image, not that the image is released.
func (a *attestations) requireSignature() error {
	if len(a.predicates(sign.Signature)) > 0 {
		return nil
	}
	reasons := a.refused
	for i, s := range a.signed {
		if i == maxReasons {
			break
		}
		reasons = append(reasons, fmt.Sprintf("a statement of the key has the type %.100q, not %s", s.PredicateType,
			sign.Signature))
	}
	return &UnsignedError{Image: a.image, Reasons: reasons}
}
