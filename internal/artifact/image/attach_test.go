package image

import (
	"fmt"
	"io"
	"iter"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

const testType = "application/vnd.example+json"

// registryOf starts a registry, and returns its host.
func registryOf(t *testing.T, options ...registry.Option) string {
	t.Helper()
	options = append(options, registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(registry.New(options...))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// attachedImage is an image for two platforms with a document at the index and at each manifest.
func attachedImage(t *testing.T) *Built {
	t.Helper()
	o := bothPlatforms(t, Base{Empty: true})
	b := build(t, o)
	manifests, err := b.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	for _, digest := range []string{b.Digest, manifests[0].Digest, manifests[1].Digest} {
		if err := b.Attach(digest, testType, []byte(`{"of":"`+digest+`"}`), map[string]string{"a": "b"}); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// collect returns all documents, or the first error.
func collect(documents iter.Seq2[[]byte, error]) (list [][]byte, err error) {
	for text, err := range documents {
		if err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	return list, nil
}

func TestAttachmentsAreWhereTheImageIs(t *testing.T) {
	b := attachedImage(t)
	plain := build(t, bothPlatforms(t, Base{Empty: true}))
	if b.Digest != plain.Digest {
		t.Errorf("attachments change the digest of the image from %s to %s", plain.Digest, b.Digest)
	}
	dir := filepath.Join(t.TempDir(), "layout")
	for range 2 { // the second replaces the first
		if err := WriteLayout(t.Context(), b, "localhost/a:1", dir); err != nil {
			t.Fatal(err)
		}
	}
	sources := map[string]Source{"layout": {Layout: dir}}
	for name, options := range map[string][]registry.Option{
		"registry": {registry.WithReferrersSupport(true)}, "registry without referrers": nil,
	} {
		ref := registryOf(t, options...) + "/a:1"
		if _, err := Push(t.Context(), b, ref, authn.DefaultKeychain); err != nil {
			t.Fatal(err)
		}
		sources[name] = Source{Reference: ref}
	}
	for name, src := range sources {
		s, err := Open(t.Context(), src)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if s.Digest != b.Digest || len(s.Manifests) != 2 || s.Manifests[0].Platform != "linux/amd64" {
			t.Errorf("%s: digest %s, manifests %v", name, s.Digest, s.Manifests)
		}
		for _, digest := range []string{s.Digest, s.Manifests[0].Digest, s.Manifests[1].Digest} {
			documents, err := collect(s.Documents(t.Context(), digest, testType, 1000))
			if err != nil || len(documents) != 1 || string(documents[0]) != `{"of":"`+digest+`"}` {
				t.Errorf("%s: %s has %q, %v", name, digest, documents, err)
			}
			for _, none := range []func() ([][]byte, error){
				func() ([][]byte, error) { return collect(s.Documents(t.Context(), digest, "text/plain", 1000)) },
				func() ([][]byte, error) { return collect(s.Documents(t.Context(), digest, testType, 10)) },
			} {
				if documents, err := none(); err != nil || len(documents) > 0 {
					t.Errorf("%s: another type or a lower limit: %q, %v", name, documents, err)
				}
			}
		}
		if err := s.Verify(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		to := filepath.Join(t.TempDir(), "program")
		for _, m := range s.Manifests {
			if _, err := ExtractProgram(t.Context(), s.Source(m), nil, m.Platform, to); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestSameDocumentGivesTheSameAttachment(t *testing.T) {
	one, two := attachedImage(t), attachedImage(t)
	for i, a := range one.sortedAttachments() {
		if other := two.sortedAttachments()[i]; a.descriptor.Digest != other.descriptor.Digest {
			t.Errorf("attachment %d: %s and %s", i, a.descriptor.Digest, other.descriptor.Digest)
		}
	}
	if err := one.Attach("sha256:"+strings.Repeat("0", 64), testType, nil, nil); err == nil {
		t.Error("an attachment to another image is accepted")
	}
}

func TestDockerArchiveHasNoAttachments(t *testing.T) {
	o := busyboxOptions(t)
	b := build(t, o)
	if err := b.Attach(b.Digest, testType, []byte("{}"), nil); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "a.tar")
	if err := WriteArchive(t.Context(), b, "localhost/a:1", file); !problem.IsInvalid(err) {
		t.Errorf("got %v, want an Invalid error", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the archive is written")
	}
	if _, err := Open(t.Context(), Source{Archive: file}); !problem.IsInvalid(err) {
		t.Errorf("got %v, want an Invalid error", err)
	}
}

func TestChangedLayoutIsNoticed(t *testing.T) {
	b := attachedImage(t)
	manifest, err := b.Images["linux/amd64"].Manifest()
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := b.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	for name, digest := range map[string]string{
		"index": b.Digest, "manifest": manifests[0].Digest, "configuration": manifest.Config.Digest.String(),
		"layer": manifest.Layers[len(manifest.Layers)-1].Digest.String(),
	} {
		dir := filepath.Join(t.TempDir(), "layout")
		if err := WriteLayout(t.Context(), b, "localhost/a:1", dir); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "blobs/sha256", strings.TrimPrefix(digest, "sha256:"))
		writeText(t, file, readText(t, file)+" ")
		s, err := Open(t.Context(), Source{Layout: dir})
		if err == nil {
			err = s.Verify(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), digest) {
			t.Errorf("changed %s: got %v, want an error with its digest", name, err)
		}
	}
}

// A registry that lists documents that are not attached to the image.
func TestAttachmentsOfOtherImagesAreIgnored(t *testing.T) {
	b := attachedImage(t)
	backend := registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0)))
	other := strings.TrimPrefix(b.Digest, "sha256:")
	first := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if first != "" && strings.Contains(r.URL.Path, "/referrers/") {
			r.URL.Path = strings.ReplaceAll(r.URL.Path, first, other)
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	ref := strings.TrimPrefix(server.URL, "http://") + "/a:1"
	if _, err := Push(t.Context(), b, ref, nil); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Source{Reference: ref})
	if err != nil {
		t.Fatal(err)
	}
	first = strings.TrimPrefix(s.Manifests[0].Digest, "sha256:")
	documents, err := collect(s.Documents(t.Context(), s.Manifests[0].Digest, testType, 1000))
	if err != nil || len(documents) != 0 {
		t.Errorf("got %q, %v", documents, err)
	}
}

// Whoever can push to the repository of an image can attach documents to it. The smallest is read
// first, and one at a time.
func TestAttachmentsOfOthersAreBounded(t *testing.T) {
	b := build(t, busyboxOptions(t))
	const size = 1 << 20
	for i := range 100 {
		junk := []byte(fmt.Sprintf("%04d%s", i, strings.Repeat("x", size-4)))
		if err := b.Attach(b.Digest, testType, junk, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Attach(b.Digest, testType, []byte("signature"), nil); err != nil {
		t.Fatal(err)
	}
	ref := registryOf(t, registry.WithReferrersSupport(true)) + "/a:1"
	if _, err := Push(t.Context(), b, ref, nil); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Source{Reference: ref})
	if err != nil {
		t.Fatal(err)
	}
	first, read := "", 0
	used := allocated(func() {
		for text, err := range s.Documents(t.Context(), s.Digest, testType, 8<<20) {
			if err != nil {
				t.Fatal(err)
			}
			first = string(text)
			break
		}
	})
	if first != "signature" || used > 16<<20 {
		t.Errorf("the first document is %.20q, and %d bytes were allocated for it", first, used)
	}
	for text, failed := range s.Documents(t.Context(), s.Digest, testType, 8<<20) {
		read, err = read+len(text), failed
	}
	if err == nil || !strings.Contains(err.Error(), "have more than 67108864 bytes") || read > 64<<20 {
		t.Errorf("got %v after %d bytes", err, read)
	}
}
