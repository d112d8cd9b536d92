package image

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// Push pushes b to the registry of ref and returns its digest, "sha256:…". It skips blobs that
// the registry has, and moves the tag last. Without a keychain it uses no credentials.
func Push(ctx context.Context, b *Built, ref string, keychain authn.Keychain) (digest string, err error) {
	tag, err := parseTag(ref)
	if err != nil {
		return "", err
	}
	var top remote.Taggable = b.Index
	if b.Index == nil {
		top = b.Images[b.platforms()[0]]
	}
	var attached []v1.Image
	for _, a := range b.sortedAttachments() {
		attached = append(attached, a)
	}
	if err := pushTagged(tag, b.Digest, top, attached, remoteOptions(ctx, keychain)); err != nil {
		return "", err
	}
	return b.Digest, nil
}

// pushTagged pushes an image and its attachments, and moves the tag last: a tag never names an
// image whose signatures are missing. A registry without the referrers API gets a tag that lists
// them (distribution-spec, "Referrers Tag Schema").
func pushTagged(tag name.Tag, digest string, top remote.Taggable, attached []v1.Image, opts []remote.Option) error {
	if len(attached) > 0 {
		if err := remote.Push(tag.Context().Digest(digest), top, opts...); err != nil {
			return registryError("push", tag, err)
		}
	}
	for _, img := range attached {
		hash, err := img.Digest()
		if err == nil {
			err = remote.Push(tag.Context().Digest(hash.String()), img, opts...)
		}
		if err != nil {
			return registryError("push the signatures of", tag, err)
		}
	}
	if err := remote.Push(tag, top, opts...); err != nil {
		return registryError("push", tag, err)
	}
	return nil
}

// Resolve adds to an image name the digest that its tag has in the registry now:
// NAME:TAG@sha256:…. The result names the same image after the tag has moved. A name with a
// digest does not change. architectures are those of its images for Linux, sorted: amd64, arm64.
// They are nil if unknown.
func Resolve(
	ctx context.Context, ref string, keychain authn.Keychain,
) (pinned string, architectures []string, err error) {
	parsed, err := parseReference(ref)
	if err != nil {
		return "", nil, err
	}
	found, err := remote.Get(parsed, remoteOptions(ctx, keychain)...)
	if err != nil {
		return "", nil, registryError("read the digest of", parsed, err)
	}
	if _, hasDigest := parsed.(name.Digest); !hasDigest {
		ref += "@" + found.Digest.String()
	}
	return ref, linuxArchitectures(found), nil
}

// linuxArchitectures returns the architectures of an image's platforms. The index has them; without
// an index they are in the configuration.
func linuxArchitectures(found *remote.Descriptor) []string {
	var platforms []*v1.Platform
	if found.MediaType.IsIndex() {
		index, err := found.ImageIndex()
		if err != nil {
			return nil
		}
		manifest, err := index.IndexManifest()
		if err != nil {
			return nil
		}
		for _, d := range manifest.Manifests {
			platforms = append(platforms, d.Platform)
		}
	} else if img, err := found.Image(); err == nil && checkConfigSize(img) == nil {
		if config, err := img.ConfigFile(); err == nil {
			platforms = append(platforms, config.Platform())
		}
	}
	var architectures []string
	for _, p := range platforms {
		switch {
		case p == nil: // it may be for any platform
			return nil
		case p.OS == "linux" && p.Architecture != "":
			architectures = append(architectures, p.Architecture)
		}
	}
	slices.Sort(architectures)
	return slices.Compact(architectures)
}

// RegistryOf returns the registry host in an image name.
func RegistryOf(ref string) (string, error) {
	parsed, err := parseReference(ref)
	if err != nil {
		return "", err
	}
	return parsed.Context().RegistryStr(), nil
}

// SameRepository reports whether two image names are in one repository, regardless of their tags
// and digests.
func SameRepository(a, b string) (bool, error) {
	first, err := parseReference(a)
	if err != nil {
		return false, err
	}
	second, err := parseReference(b)
	if err != nil {
		return false, err
	}
	return first.Context().Name() == second.Context().Name(), nil
}

func registryError(doing string, ref name.Reference, err error) error {
	host, repository := ref.Context().RegistryStr(), ref.Context().RepositoryStr()
	wrapped := func(seen, hint string) error {
		return problem.Errorf(hint, "%s %s: %s: %w", doing, canonical(ref), seen, err)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errTooLarge) {
		return fmt.Errorf("%s %s: %w", doing, canonical(ref), err)
	}
	var answer *transport.Error
	if errors.As(err, &answer) {
		switch {
		case answered(answer, http.StatusUnauthorized, transport.UnauthorizedErrorCode),
			answered(answer, http.StatusForbidden, transport.DeniedErrorCode):
			return wrapped("registry "+host+" refused the credentials or requires some",
				fmt.Sprintf("log in with `docker login %s` and check your permissions for %s; "+
					"some registries also answer this way to a misspelled name", host, repository))
		case isMissing(answer):
			return wrapped("not found in registry "+host,
				fmt.Sprintf("check the name; in some registries %s must be created before the first push", repository))
		case answered(answer, http.StatusTooManyRequests, transport.TooManyRequestsErrorCode):
			return wrapped("registry "+host+" limits the request rate",
				"wait, log in, or use no registry: --busybox PATH")
		}
		return wrapped("registry "+host+" returned an error", "")
	}
	return networkError(wrapped, host, err)
}

func networkError(wrapped func(seen, hint string) error, host string, err error) error {
	const without = "or use no registry: --busybox PATH as the base, --archive FILE.tar as the destination"
	var (
		dns       *net.DNSError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
	)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return wrapped("connection to "+host+" refused",
			"check that the registry is running, its host and port, "+without)
	case errors.As(err, &dns):
		return wrapped("host "+host+" not found", "check the name and the network, "+without)
	case errors.As(err, &authority) || errors.As(err, &hostname):
		return wrapped("the certificate of "+host+" is not trusted",
			"add the registry's CA to this machine's certificates")
	case errors.Is(err, http.ErrSchemeMismatch) ||
		strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return wrapped("registry "+host+" does not use TLS", "plain HTTP is allowed for loopback addresses only")
	}
	return wrapped("cannot reach registry "+host, "check the network and the proxy settings, "+without)
}

// IsNotFound reports whether a registry does not have the image of the operation that failed.
func IsNotFound(err error) bool {
	var answer *transport.Error
	return errors.As(err, &answer) && isMissing(answer)
}

func isMissing(answer *transport.Error) bool {
	return answered(answer, http.StatusNotFound, transport.NameUnknownErrorCode, transport.ManifestUnknownErrorCode)
}

// answered reports whether the registry returned the status or one of the codes.
func answered(err *transport.Error, status int, codes ...transport.ErrorCode) bool {
	return err.StatusCode == status || slices.ContainsFunc(err.Errors, func(d transport.Diagnostic) bool {
		return slices.Contains(codes, d.Code)
	})
}
