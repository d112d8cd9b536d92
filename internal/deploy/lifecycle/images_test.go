package lifecycle

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"go.uber.org/zap"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/artifact/sign"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
	"github.com/pmk-sched/pmk-sched/versions"
)

// imageRegistry has images, some of which its key signed.
type imageRegistry struct {
	address string
	key     *sign.PrivateKey
}

func newRegistry(t *testing.T) *imageRegistry {
	t.Helper()
	generated, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(generated)
	if err != nil {
		t.Fatal(err)
	}
	key, err := sign.ParsePrivateKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true),
		registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return &imageRegistry{address: strings.TrimPrefix(server.URL, "http://"), key: key}
}

// push pushes an image, and returns its name.
func (r *imageRegistry) push(t *testing.T, name string, signed bool) string {
	t.Helper()
	return r.pushContent(t, name, name, signed)
}

// pushContent pushes an image whose program has that content.
func (r *imageRegistry) pushContent(t *testing.T, name, content string, signed bool) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	built, err := image.Build(t.Context(), image.Options{
		Base: image.Base{Empty: true}, Platforms: []string{"linux/amd64"}, Entrypoint: []string{"/program"},
		Files: map[string][]image.File{"linux/amd64": {{Path: "/program", Source: program}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if signed {
		statement := sign.NewStatement(sign.Signature, strings.TrimPrefix(built.Digest, "sha256:"), nil)
		bundle, err := sign.Sign(t.Context(), r.key, statement)
		if err == nil {
			err = built.Attach(built.Digest, sign.BundleType, bundle, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	reference := r.address + "/" + name + ":v1"
	if _, err := image.Push(t.Context(), built, reference, nil); err != nil {
		t.Fatal(err)
	}
	return reference
}

// An image of any container of a signed scheduler, or of an extender that it calls, could be
// replaced by a user who may write to the registry.
func TestEveryImageOfASignedSchedulerMustBeSigned(t *testing.T) {
	registry := newRegistry(t)
	signed, other := registry.push(t, "kube-scheduler", true), registry.push(t, "extender-signed", true)
	unsigned := registry.push(t, "extender", false)
	sidecar := func(image string) []v1alpha1.Extender {
		return []v1alpha1.Extender{{Name: "added", Sidecar: true,
			Deployed: &v1alpha1.DeployedExtender{Added: true, Image: image}}}
	}
	extender := func(image string, sidecar bool) []extenders.Options {
		return []extenders.Options{{Extender: v1alpha1.Extender{Name: "e", Image: image, Sidecar: sidecar}}}
	}
	for name, c := range map[string]struct {
		image     string
		extenders []extenders.Options
		former    []v1alpha1.Extender
		refused   bool
	}{
		"signed scheduler":                {image: signed},
		"signed sidecar":                  {image: signed, extenders: extender(other, true), former: sidecar(other)},
		"unsigned scheduler":              {image: unsigned, refused: true},
		"unsigned sidecar":                {image: signed, extenders: extender(unsigned, true), refused: true},
		"unsigned extender":               {image: signed, extenders: extender(unsigned, false), refused: true},
		"unsigned sidecar that was added": {image: signed, former: sidecar(unsigned), refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &session.Session{Warn: func(string) {}, Note: func(string) {}, Log: zap.NewNop()}
			r := &request{deps: deploy.Deps{Signed: pack.VerifySignature}}
			r.Cluster = &inspect.Info{Release: versions.Release{Major: 1, Minor: 24, Patch: 3}}
			r.Image, r.Extenders = c.image, c.extenders
			r.Former = &extenders.Former{Extenders: c.former}
			r.Request = &v1alpha1.CustomScheduler{}
			r.Request.Spec.Image.RequireSignature = registry.key.Public().PEM()
			if err := r.locateImages(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			err := r.requireImages()
			if c.refused {
				if err == nil || !strings.Contains(err.Error(), "has no signature of the key") {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Error(err)
			}
			for _, image := range r.Images() {
				if !strings.Contains(*image, "@sha256:") {
					t.Errorf("%s has no digest", *image)
				}
			}
		})
	}
}

// A user who may write a CustomScheduler chooses its images and its key: the bounds of the
// controller hold for each of them.
func TestBoundsHoldForEveryImage(t *testing.T) {
	registry, other := newRegistry(t), newRegistry(t)
	signed, unsigned := registry.push(t, "team/kube-scheduler", true), registry.push(t, "team/unsigned", false)
	outside := registry.push(t, "team-b/kube-scheduler", true)
	foreign := other.push(t, "team/kube-scheduler", true)
	key, otherKey := registry.key.Public().PEM(), other.key.Public().PEM()
	team := []string{registry.address + "/team"}
	const noSignature, notAllowed = "has no signature of the key", "is in none of the allowed repositories"
	extender := func(image string, sidecar bool) []extenders.Options {
		return []extenders.Options{{Extender: v1alpha1.Extender{Name: "e", Image: image, Sidecar: sidecar}}}
	}
	added := []v1alpha1.Extender{{Name: "added", Sidecar: true,
		Deployed: &v1alpha1.DeployedExtender{Added: true, Image: outside}}}
	for name, c := range map[string]struct {
		image, required string
		extenders       []extenders.Options
		former          []v1alpha1.Extender
		bounds          session.Bounds
		refused         string
	}{
		"no bounds":                      {image: foreign},
		"signed, no key in the request":  {image: signed, bounds: session.Bounds{Key: key}},
		"signed, the same key":           {image: signed, required: key, bounds: session.Bounds{Key: key}},
		"signed, the requirement lifted": {image: signed, required: v1alpha1.NoSignature, bounds: session.Bounds{Key: key}},
		"unsigned, the requirement lifted": {image: unsigned, required: v1alpha1.NoSignature,
			bounds: session.Bounds{Key: key}, refused: noSignature},
		"unsigned, no key in the request": {image: unsigned, bounds: session.Bounds{Key: key}, refused: noSignature},
		"signed by the key of the request": {image: foreign, required: otherKey, bounds: session.Bounds{Key: key},
			refused: noSignature},
		"not signed by the key of the request": {image: signed, required: otherKey, bounds: session.Bounds{Key: key},
			refused: noSignature},
		"unsigned extender": {image: signed, extenders: extender(unsigned, false), bounds: session.Bounds{Key: key},
			refused: noSignature},
		"unsigned sidecar": {image: signed, extenders: extender(unsigned, true), bounds: session.Bounds{Key: key},
			refused: noSignature},
		"allowed":   {image: unsigned, bounds: session.Bounds{Repositories: team}},
		"elsewhere": {image: foreign, bounds: session.Bounds{Repositories: team}, refused: notAllowed},
		"another repository of the registry": {image: outside, bounds: session.Bounds{Repositories: team},
			refused: notAllowed},
		"extender elsewhere": {image: signed, extenders: extender(outside, false),
			bounds: session.Bounds{Repositories: team}, refused: notAllowed},
		"sidecar elsewhere": {image: signed, extenders: extender(outside, true),
			bounds: session.Bounds{Repositories: team}, refused: notAllowed},
		"sidecar that was added elsewhere": {image: signed, former: added, bounds: session.Bounds{Repositories: team},
			refused: notAllowed},
		"signed and elsewhere": {image: outside, bounds: session.Bounds{Key: key, Repositories: team},
			refused: notAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			s := &session.Session{Warn: func(string) {}, Note: func(string) {}, Log: zap.NewNop()}
			verified := 0
			r := &request{deps: deploy.Deps{Bounds: c.bounds, Cluster: recordedLedger{},
				Signed: func(ctx context.Context, r pack.SignatureRequest) (string, error) {
					verified++
					return pack.VerifySignature(ctx, r)
				}}}
			r.Cluster = &inspect.Info{Release: versions.Release{Major: 1, Minor: 24, Patch: 3}}
			r.Image, r.Extenders = c.image, c.extenders
			r.Former = &extenders.Former{Extenders: c.former}
			r.Request = &v1alpha1.CustomScheduler{}
			r.Request.Spec.Image.RequireSignature = c.required
			if err := r.keepRequirement(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			err := r.locateImages(t.Context(), s)
			if err == nil {
				err = r.requireImages()
			}
			switch {
			case c.refused == "" && err != nil:
				t.Error(err)
			case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
				t.Errorf("got %v, want %s", err, c.refused)
			case c.refused == notAllowed && (verified > 0 || !errors.As(err, new(*deploy.RefusedImageError))):
				t.Errorf("got %v after %d requests to registries", err, verified)
			}
		})
	}
}
