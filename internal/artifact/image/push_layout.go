package image

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// maxIndex is the size in bytes of the largest index of a layout that is read.
const maxIndex = 4 << 20

// Registry is how to reach a registry.
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
	return append(opts, remote.WithTransport(transport)), nil
}

// Pushed is an image that [PushLayout] copied.
type Pushed struct {
	Reference string `json:"reference"`
	Digest    string `json:"digest"`
	// Referrers are the digests of its referrers: signatures, SBOMs, provenance.
	Referrers []string `json:"referrers"`
}

// namedLayout is an image of an OCI layout with its referrers.
type namedLayout struct {
	name      string
	index     v1.ImageIndex
	top       v1.Descriptor
	referrers []v1.Descriptor
}

// readNamedLayout reads a layout with one image, which has a name. All other manifests in it are
// referrers.
func readNamedLayout(dir string) (*namedLayout, error) {
	info, err := os.Stat(filepath.Join(dir, "index.json"))
	if err == nil && info.Size() > maxIndex {
		err = fmt.Errorf("its index has %d bytes, the limit is %d", info.Size(), maxIndex)
	}
	if err != nil {
		return nil, problem.Invalidf("", "read OCI layout %s: %w", dir, err)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, problem.Invalidf("", "read OCI layout %s: %w", dir, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, problem.Invalidf("", "read OCI layout %s: %w", dir, err)
	}
	s := &namedLayout{index: index}
	for _, d := range manifest.Manifests {
		name := d.Annotations[annotationContainerdName]
		switch {
		case name == "":
			s.referrers = append(s.referrers, d)
		case s.name != "":
			return nil, problem.Invalidf("", "read OCI layout %s: expected one image, got several", dir)
		default:
			s.name, s.top = name, d
		}
	}
	if s.name == "" {
		return nil, problem.Invalidf("write it with `pmk-sched build --archive`", "read OCI layout %s: it has no named image", dir)
	}
	return s, nil
}

// LayoutName returns the canonical name of the image in an OCI layout.
func LayoutName(dir string) (string, error) {
	s, err := readNamedLayout(dir)
	if err != nil {
		return "", err
	}
	return s.name, nil
}

// PushLayout copies the image of an OCI layout, and all its referrers, to a registry under the name
// ref. The digests stay the same. The tag is moved last: it never names an image whose referrers
// are missing. A registry without the referrers API gets a tag that lists them (distribution-spec,
// "Referrers Tag Schema").
func PushLayout(ctx context.Context, dir, ref string, registry Registry) (*Pushed, error) {
	s, err := readNamedLayout(dir)
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
	pushed := &Pushed{Reference: tag.String(), Digest: s.top.Digest.String(), Referrers: []string{}}
	if err := s.push(tag.Context().Digest(pushed.Digest), opts); err != nil {
		return nil, registryError("push", tag, err)
	}
	for _, d := range s.referrers {
		img, err := s.index.Image(d.Digest)
		if err == nil {
			err = remote.Write(tag.Context().Digest(d.Digest.String()), img, opts...)
		}
		if err != nil {
			return nil, registryError("push a referrer of", tag, err)
		}
		pushed.Referrers = append(pushed.Referrers, d.Digest.String())
	}
	if err := s.push(tag, opts); err != nil {
		return nil, registryError("push", tag, err)
	}
	return pushed, nil
}

func (s *namedLayout) push(to name.Reference, opts []remote.Option) error {
	if s.top.MediaType.IsIndex() {
		index, err := s.index.ImageIndex(s.top.Digest)
		if err != nil {
			return err
		}
		return remote.WriteIndex(to, index, opts...)
	}
	img, err := s.index.Image(s.top.Digest)
	if err != nil {
		return err
	}
	return remote.Write(to, img, opts...)
}
