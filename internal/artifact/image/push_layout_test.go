package image

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// addReferrer adds a manifest that refers to a subject to an OCI layout, as signatures are there.
func addReferrer(t *testing.T, dir string, subject v1.Descriptor, document string) string {
	t.Helper()
	l, err := layout.FromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	blob := func(text string) v1.Descriptor {
		hash, size, err := v1.SHA256(strings.NewReader(text))
		if err == nil {
			err = l.WriteBlob(hash, io.NopCloser(strings.NewReader(text)))
		}
		if err != nil {
			t.Fatal(err)
		}
		return v1.Descriptor{MediaType: "application/vnd.example+json", Size: size, Digest: hash}
	}
	config := blob("{}")
	config.MediaType = "application/vnd.oci.empty.v1+json"
	text, err := json.Marshal(v1.Manifest{SchemaVersion: 2, MediaType: ociManifest, Config: config,
		ArtifactType: "application/vnd.example+json", Layers: []v1.Descriptor{blob(document)}, Subject: &subject})
	if err != nil {
		t.Fatal(err)
	}
	d := blob(string(text))
	d.MediaType, d.ArtifactType = ociManifest, "application/vnd.example+json"
	if err := l.AppendDescriptor(d); err != nil {
		t.Fatal(err)
	}
	return d.Digest.String()
}

func TestLayoutIsPushedWithItsReferrers(t *testing.T) {
	for title, opts := range map[string][]registry.Option{
		"referrers API": {registry.WithReferrersSupport(true)}, "fallback tag": nil,
	} {
		server := httptest.NewTLSServer(registry.New(append(opts, registry.Logger(log.New(io.Discard, "", 0)))...))
		t.Cleanup(server.Close)
		ca := filepath.Join(t.TempDir(), "ca.pem")
		block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
		writeText(t, ca, string(pem.EncodeToMemory(block)))
		built, err := Build(t.Context(), busyboxOptions(t))
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "layout")
		if err := WriteLayout(t.Context(), built, "localhost/kube-scheduler:v1.24.3", dir); err != nil {
			t.Fatal(err)
		}
		subject, err := descriptorOf(built.Images["linux/amd64"])
		if err != nil {
			t.Fatal(err)
		}
		signature := addReferrer(t, dir, *subject, "signature")
		ref := strings.TrimPrefix(server.URL, "https://") + "/mirror/kube-scheduler:v1.24.3"
		if _, err := PushLayout(t.Context(), dir, ref, Registry{}); err == nil {
			t.Errorf("%s: pushed without the CA", title)
		}

		pushed, err := PushLayout(t.Context(), dir, ref, Registry{CA: ca})
		if err != nil {
			t.Fatal(err)
		}

		want := &Pushed{Reference: ref, Digest: built.Digest, Referrers: []string{signature}}
		if diff := cmp.Diff(want, pushed); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", title, diff)
		}
		digest, err := name.NewDigest(strings.TrimSuffix(ref, ":v1.24.3") + "@" + built.Digest)
		if err != nil {
			t.Fatal(err)
		}
		client := remote.WithTransport(server.Client().Transport)
		index, err := remote.Referrers(digest, client)
		if err != nil {
			t.Fatal(err)
		}
		found, err := index.IndexManifest()
		if err != nil || len(found.Manifests) != 1 || found.Manifests[0].Digest.String() != signature {
			t.Errorf("%s: referrers %+v, %v, want %s", title, found, err, signature)
		}
		head, err := remote.Head(digest.Context().Tag("v1.24.3"), client)
		if err != nil || head.Digest.String() != built.Digest {
			t.Errorf("%s: tag: %+v, %v", title, head, err)
		}
	}
}

func descriptorOf(img v1.Image) (*v1.Descriptor, error) {
	digest, err := img.Digest()
	if err != nil {
		return nil, err
	}
	size, err := img.Size()
	return &v1.Descriptor{MediaType: ociManifest, Digest: digest, Size: size}, err
}

func TestPushOfALayoutRefusesBadInput(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "ca.pem")
	writeText(t, bad, "no certificate")
	built, err := Build(t.Context(), busyboxOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "layout")
	if err := WriteLayout(t.Context(), built, "localhost/a:b", dir); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ dir, ref, ca string }{
		{t.TempDir(), "127.0.0.1:1/a:b", ""}, {dir, "127.0.0.1:1/a:b", bad}, {dir, "127.0.0.1:1/a:b", bad + "x"}, {dir, "a b", ""},
	} {
		if _, err := PushLayout(t.Context(), c.dir, c.ref, Registry{CA: c.ca}); !problem.IsInvalid(err) {
			t.Errorf("%+v: got %v, want an error about the input", c, err)
		}
	}
}

func TestImageOnASavedBaseIsTheSameAsOnTheRegistrysOne(t *testing.T) {
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(inner.ServeHTTP))
	t.Cleanup(server.Close)
	reference := strings.TrimPrefix(server.URL, "http://") + "/busybox:1"
	ref, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	other := busyboxOptions(t)
	base, err := Build(t.Context(), Options{Base: other.Base, Platforms: other.Platforms, Files: other.Files})
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, base.Images["linux/amd64"]); err != nil {
		t.Fatal(err)
	}
	o := busyboxOptions(t)
	o.Base = Base{Reference: reference}
	online, err := Build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "bases")
	saved, err := SaveBase(t.Context(), o.Base, o.Platforms, nil, dir)
	if err != nil || !strings.HasPrefix(saved, reference+"@sha256:") {
		t.Fatalf("got %q, %v", saved, err)
	}
	server.Close()

	o.Bases = dir
	offline, err := Build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}

	if online.Digest != offline.Digest || online.Base != offline.Base {
		t.Errorf("got %s on %s, want %s on %s", offline.Digest, offline.Base, online.Digest, online.Base)
	}
	o.Platforms = []string{"linux/arm64"}
	o.Files["linux/arm64"] = o.Files["linux/amd64"]
	if _, err := Build(t.Context(), o); err == nil {
		t.Error("a platform that was not saved did not come from the registry")
	}
}

func TestBusyboxIsSavedAsTheDefaultBase(t *testing.T) {
	o := busyboxOptions(t)
	direct, err := Build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := SaveBase(t.Context(), o.Base, o.Platforms, nil, dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(o.Base.Busybox); err != nil {
		t.Fatal(err)
	}
	o.Base, o.Bases = Base{Reference: DefaultBase}, dir
	saved, err := Build(t.Context(), o)
	if err != nil || saved.Digest != direct.Digest {
		t.Errorf("got %+v, %v, want the digest %s", saved, err, direct.Digest)
	}
}
