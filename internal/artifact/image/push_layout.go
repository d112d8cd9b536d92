package image

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// Registry contains the credentials and certificates for a registry.
type Registry struct {
	// Keychain provides the credentials. If it is nil, none are used.
	Keychain authn.Keychain
	// CA is the path of the registry's certificate authorities in PEM, which are trusted in addition
	// to the machine's. It may be empty.
	CA string
}

func (r Registry) options(ctx context.Context) ([]remote.Option, error) {
	opts := remoteOptions(ctx, r.Keychain)
	if r.CA == "" {
		return opts, nil
	}
	text, err := os.ReadFile(r.CA)
	if err != nil {
		return nil, problem.Invalidf("", "read the CA of the registry: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read the certificates of this machine: %w", err)
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, problem.Invalidf("use a file with certificates in PEM", "read the CA of the registry: %s has no certificate",
			r.CA)
	}
	transport, ok := remote.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("unexpected transport of go-containerregistry")
	}
	transport = transport.Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return append(opts, remote.WithTransport(boundedAnswers{transport})), nil
}

// Pushed is an image that [PushLayout] copied.
type Pushed struct {
	Reference string `json:"reference"`
	Digest    string `json:"digest"`
	// Referrers are its referrers' digests: signatures, SBOMs, provenance.
	Referrers []string `json:"referrers"`
}

// readNamedLayout reads a layout whose image has a name.
func readNamedLayout(dir string) (s *storedLayout, name string, err error) {
	s, err = readLayout(dir)
	if err != nil {
		return nil, "", problem.Invalidf("", "read OCI layout %s: %w", dir, err)
	}
	if name = s.top.Annotations[annotationContainerdName]; name == "" {
		return nil, "", problem.Invalidf("write it with `pmk-sched build --archive`", "read OCI layout %s: its image has no name",
			dir)
	}
	return s, name, nil
}

// LayoutName returns the canonical name of the image in an OCI layout.
func LayoutName(dir string) (string, error) {
	_, name, err := readNamedLayout(dir)
	return name, err
}

// PushLayout copies the image of an OCI layout, and all its referrers, to a registry under the name
// ref. The digests stay the same, and the tag is moved last, as by [Push].
func PushLayout(ctx context.Context, dir, ref string, registry Registry) (*Pushed, error) {
	s, _, err := readNamedLayout(dir)
	if err != nil {
		return nil, err
	}
	tag, err := parseTag(ref)
	if err != nil {
		return nil, err
	}
	opts, err := registry.options(ctx)
	if err != nil {
		return nil, err
	}
	top, err := s.image()
	if err != nil {
		return nil, problem.Invalidf("", "read OCI layout %s: %w", dir, err)
	}
	attached, err := s.attachments()
	if err != nil {
		return nil, problem.Invalidf("", "read OCI layout %s: %w", dir, err)
	}
	pushed := &Pushed{Reference: tag.String(), Digest: s.top.Digest.String(), Referrers: []string{}}
	for _, d := range s.attached {
		pushed.Referrers = append(pushed.Referrers, d.Digest.String())
	}
	if err := pushTagged(tag, pushed.Digest, top, attached, opts); err != nil {
		return nil, err
	}
	return pushed, nil
}

// image returns the index or the only manifest of the image.
func (s *storedLayout) image() (remote.Taggable, error) {
	if s.top.MediaType.IsIndex() {
		return s.index.ImageIndex(s.top.Digest)
	}
	return s.index.Image(s.top.Digest)
}
