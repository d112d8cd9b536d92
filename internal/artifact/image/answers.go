package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
)

func remoteOptions(ctx context.Context, keychain authn.Keychain) []remote.Option {
	opts := []remote.Option{
		remote.WithContext(ctx), remote.WithUserAgent(userAgent),
		remote.WithTransport(boundedAnswers{remote.DefaultTransport}),
	}
	if keychain != nil {
		opts = append(opts, remote.WithAuthFromKeychain(keychain))
	}
	return opts
}

// errTooLarge is returned for content of a registry that exceeds a limit.
var errTooLarge = errors.New("the image is too large")

// boundedAnswers limits the answers of a registry that go-containerregistry keeps in memory, such
// as manifests, to maxManifest. Blobs are streams, and the readers of each kind have limits.
type boundedAnswers struct{ http.RoundTripper }

// RoundTrip sends a request.
func (b boundedAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(r)
	if err != nil || isBlob(r) {
		return response, err
	}
	tooLarge := fmt.Errorf("%w: the answer of %s has more than %d bytes", errTooLarge, r.URL.Host, maxManifest)
	response.Body = struct {
		io.Reader
		io.Closer
	}{&safeio.LimitedReader{R: response.Body, N: maxManifest, Err: tooLarge}, response.Body}
	return response, nil
}

// isBlob reports whether a request is for a blob, possibly after redirections.
func isBlob(r *http.Request) bool {
	for r.Response != nil && r.Response.Request != nil {
		r = r.Response.Request
	}
	return path.Base(path.Dir(r.URL.Path)) == "blobs"
}

// checkConfigSize returns an error if an image's configuration is too large to be read.
func checkConfigSize(img v1.Image) error {
	manifest, err := img.Manifest()
	if err != nil {
		return err
	}
	if size := manifest.Config.Size; size > maxManifest {
		return fmt.Errorf("%w: the configuration has %d bytes, the limit is %d", errTooLarge, size, maxManifest)
	}
	return nil
}
