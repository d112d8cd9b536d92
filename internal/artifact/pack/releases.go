package pack

import (
	"bytes"
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/sign"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
)

const (
	// ReleasesType is the media type of a release index in a registry, and its manifest's
	// artifactType.
	ReleasesType = "application/vnd.pmk-sched.releases.v1+yaml"
	// ReleasesTag is the tag of a release index in its images' repository.
	ReleasesTag = "releases"
)

// WriteReleases writes a release index to a file, atomically.
func WriteReleases(ctx context.Context, file string, index *v1alpha1.SchedulerReleases) error {
	text, err := index.Encode()
	if err == nil {
		err = writeFile(ctx, file, 0o644, bytes.NewReader(text))
	}
	if err != nil {
		return fmt.Errorf("write --index: %w", err)
	}
	return nil
}

// maxReleases bounds a release index, in bytes.
const maxReleases = 8 << 20

// ReadReleases reads a release index from a registry. If key, in PEM, is not empty, it must have
// signed the index: otherwise the error is an [UnsignedError].
func ReadReleases(ctx context.Context, reference, key string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, signatureTime)
	defer cancel()
	stored, err := image.Open(ctx, image.Source{Reference: reference, Keychain: authn.DefaultKeychain})
	if err != nil {
		return nil, fmt.Errorf("read the release index: %w", err)
	}
	if key != "" {
		if _, err := VerifySignature(ctx, SignatureRequest{Reference: stored.Name, Key: key}); err != nil {
			return nil, err
		}
	}
	text, err := stored.Document(ReleasesType, maxReleases)
	if err == nil && text == nil {
		err = problem.Invalidf("`pmk-sched build --index FILE --push` pushes a release index",
			"%s is not a release index", reference)
	}
	return text, err
}

// PushReleases pushes a release index to a repository with the tag [ReleasesTag], and returns its
// reference by digest. signKey is the key of [Request.SignKey], or empty.
func PushReleases(
	ctx context.Context, s *session.Session, index *v1alpha1.SchedulerReleases, repository, signKey string,
) (string, error) {
	signer, err := readSigner(ctx, signKey)
	if err != nil {
		return "", err
	}
	text, err := index.Encode()
	if err != nil {
		return "", err
	}
	made, err := image.NewArtifact(ReleasesType, text, map[string]string{image.LabelTitle: "releases.yaml"})
	if err != nil {
		return "", err
	}
	if signer != nil {
		if err := attest(ctx, signer, made, made.Digest, sign.Signature, nil); err != nil {
			return "", err
		}
	}
	reference := repository + ":" + ReleasesTag
	err = s.Step("push "+reference, func() error {
		_, err := image.Push(ctx, made, reference, authn.DefaultKeychain)
		return err
	})
	return repository + "@" + made.Digest, err
}
