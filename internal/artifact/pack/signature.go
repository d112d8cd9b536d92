package pack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/sign"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/versions"
)

// UnsignedError is returned for an image that the key did not sign.
type UnsignedError struct {
	Image string
	// Reasons has one line for each signature of the image that was read.
	Reasons []string

	hints []string
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
	if len(e.hints) > 0 {
		return strings.Join(e.hints, "; ")
	}
	return "sign it when it is built: `pmk-sched build --sign-key KEY --push`; see docs/signing.md"
}

// CheckFailed reports that the image was read, and that it is not signed by the key.
func (e *UnsignedError) CheckFailed() bool { return true }

// signatureTime bounds the time in which signatures or a release index are read: a registry may
// answer for ever.
const signatureTime = 5 * time.Minute

// SignatureRequest is an image whose signature is required.
type SignatureRequest struct {
	// Reference names the image in a registry, and Key is the public key in PEM.
	Reference, Key string
	// Release compares the release in the signature, if that names one. It may be nil.
	Release func(versions.Release) error
}

// VerifySignature verifies that a key signed a registry image, and that the signature's name and
// release, if any, are those in the request. It returns the image name with the digest. The error
// is an [UnsignedError] if there is no such signature.
func VerifySignature(ctx context.Context, r SignatureRequest) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, signatureTime)
	defer cancel()
	public, err := sign.ParsePublicKey([]byte(r.Key))
	if err != nil {
		return "", err
	}
	stored, err := image.Open(ctx, image.Source{Reference: r.Reference, Keychain: authn.DefaultKeychain})
	if err != nil {
		return "", problem.WithHint(fmt.Errorf("verify the signature of %s: %w", r.Reference, err),
			"signatures are read from the registry of the image")
	}
	a := newAttestations(stored, stored.Digest, r)
	for bundle, err := range stored.Documents(ctx, stored.Digest, sign.BundleType, sign.MaxBundle) {
		if err != nil {
			return "", err
		}
		if a.add(public, bundle); a.requireSignature() == nil {
			break
		}
	}
	if !strings.Contains(r.Reference, "@") {
		r.Reference += "@" + stored.Digest
	}
	return r.Reference, a.requireSignature()
}

// compare compares the claims of a signature with the request.
func (r SignatureRequest) compare(s *sign.Statement) error {
	claims, err := s.Claims()
	if err != nil {
		return err
	}
	if claims.Name != "" && r.Reference != "" {
		same, err := image.SameRepository(claims.Name, r.Reference)
		if err != nil || !same {
			return problem.Errorf("check the name of the image; `pmk-sched build --sign-name` signs for another one",
				"the signature is for images with the name %.200s", claims.Name)
		}
	}
	if claims.Release == "" || r.Release == nil {
		return nil
	}
	release, err := versions.Parse(claims.Release)
	if err != nil {
		return fmt.Errorf("read the release in the signature: %w", err)
	}
	return r.Release(release)
}

// ParseKey reads a public key in PEM, and returns the same key in one form and its identifier: the
// base64-encoded SHA-256 digest of its DER encoding.
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
	request       SignatureRequest
	signed        []*sign.Statement
	// refused has the reason for each bundle that is not a statement of the key about the manifest.
	refused []error
}

// maxReasons bounds the reasons that are listed: anyone who can push to a repository can add some.
const maxReasons = 5

func newAttestations(stored *image.Stored, digest string, r SignatureRequest) *attestations {
	return &attestations{image: stored.Name, digest: strings.TrimPrefix(digest, "sha256:"), request: r}
}

// readAttestations returns all statements of a key about a manifest.
func readAttestations(
	ctx context.Context, stored *image.Stored, digest string, key *sign.PublicKey, reference string,
) (*attestations, error) {
	a := newAttestations(stored, digest, SignatureRequest{Reference: reference})
	for bundle, err := range stored.Documents(ctx, digest, sign.BundleType, sign.MaxBundle) {
		if err != nil {
			return nil, err
		}
		a.add(key, bundle)
	}
	return a, nil
}

// add adds the statement in a bundle, or the reason why it is refused.
func (a *attestations) add(key *sign.PublicKey, bundle []byte) {
	statement, err := sign.Verify(key, bundle)
	switch {
	case err != nil:
	case !statement.IsAbout(statement.PredicateType, a.digest):
		err = errors.New("verify bundle: its statement is about another image")
	case statement.PredicateType == sign.Signature:
		err = a.request.compare(statement)
	}
	switch {
	case err == nil:
		a.signed = append(a.signed, statement)
	case len(a.refused) < maxReasons:
		a.refused = append(a.refused, err)
	}
}

// predicates returns a type's signed predicates.
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
	var reasons, hints []string
	for _, err := range a.refused {
		reasons, hints = append(reasons, err.Error()), append(hints, problem.Hints(err)...)
	}
	for i, s := range a.signed {
		if i == maxReasons {
			break
		}
		reasons = append(reasons, fmt.Sprintf("a statement of the key has the type %.100q, not %s", s.PredicateType,
			sign.Signature))
	}
	return &UnsignedError{Image: a.image, Reasons: reasons, hints: hints}
}
