package image

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// edit changes the JSON of an index in a file of a layout.
func edit(t *testing.T, file string, change func(*v1.IndexManifest)) []byte {
	t.Helper()
	index := &v1.IndexManifest{}
	if err := json.Unmarshal([]byte(readText(t, file)), index); err != nil {
		t.Fatal(err)
	}
	change(index)
	text, err := json.Marshal(index)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// changeIndex replaces the index of the image of a layout, with the right digest.
func changeIndex(t *testing.T, dir string, change func(*v1.IndexManifest)) {
	t.Helper()
	top := filepath.Join(dir, "index.json")
	text := edit(t, top, func(layout *v1.IndexManifest) {
		d := &layout.Manifests[0]
		inner := edit(t, filepath.Join(dir, "blobs/sha256", d.Digest.Hex), change)
		digest, size, err := v1.SHA256(bytes.NewReader(inner))
		if err != nil {
			t.Fatal(err)
		}
		d.Digest, d.Size = digest, size
		writeText(t, filepath.Join(dir, "blobs/sha256", digest.Hex), string(inner))
	})
	writeText(t, top, string(text))
}

// Others may have written a layout.
func TestLayoutBeyondALimitIsRefused(t *testing.T) {
	repeat := func(list []v1.Descriptor, count int) []v1.Descriptor { return slices.Repeat(list[:1], count) }
	pad := func(size int) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			file := filepath.Join(dir, "index.json")
			text := readText(t, file)
			writeText(t, file, text+strings.Repeat(" ", size-len(text)))
		}
	}
	layout := func(change func(*v1.IndexManifest)) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			file := filepath.Join(dir, "index.json")
			writeText(t, file, string(edit(t, file, change)))
		}
	}
	index := func(change func(*v1.IndexManifest)) func(*testing.T, string) {
		return func(t *testing.T, dir string) { changeIndex(t, dir, change) }
	}
	attach := func(count int) func(*testing.T, string) {
		return layout(func(m *v1.IndexManifest) {
			m.Manifests = append(m.Manifests[:1], repeat(m.Manifests[1:], count)...)
		})
	}
	for name, c := range map[string]struct {
		change func(*testing.T, string)
		want   string
	}{
		"as it was":             {func(*testing.T, string) {}, ""},
		"index of the limit":    {pad(maxManifest), ""},
		"index above the limit": {pad(maxManifest + 1), "its index has 1048577 bytes, the limit is 1048576"},
		"no image":              {layout(func(m *v1.IndexManifest) { m.Manifests = m.Manifests[1:] }), "expected one image, got 0"},
		"two images": {layout(func(m *v1.IndexManifest) { m.Manifests = repeat(m.Manifests, 2) }),
			"expected one image, got 2"},
		"attachments":         {attach(maxAttachments), ""},
		"one attachment more": {attach(maxAttachments + 1), "at most 256 attachments, got 257"},
		"image above the limit": {layout(func(m *v1.IndexManifest) { m.Manifests[0].Size = maxManifest + 1 }),
			"has 1048577 bytes"},
		"manifests of the limit": {index(func(m *v1.IndexManifest) { m.Manifests = repeat(m.Manifests, maxManifests) }), ""},
		"one manifest more": {index(func(m *v1.IndexManifest) { m.Manifests = repeat(m.Manifests, maxManifests+1) }),
			"has 65 manifests, the limit is 64"},
		"entry of another type": {index(func(m *v1.IndexManifest) { m.Manifests[0].MediaType = "text/plain" }),
			`an entry of the type "text/plain", expected images`},
		"entry that runs nowhere": {index(func(m *v1.IndexManifest) {
			m.Manifests[0].MediaType, m.Manifests[0].Platform = "text/plain", &v1.Platform{OS: "unknown"}
		}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "layout")
			if err := WriteLayout(t.Context(), attachedImage(t), "localhost/a:1", dir); err != nil {
				t.Fatal(err)
			}
			c.change(t, dir)
			_, err := Open(t.Context(), Source{Layout: dir})
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (!problem.IsInvalid(err) || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), dir)):
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// A registry may list any attachments of an image.
func TestAttachmentsInARegistryAreLimited(t *testing.T) {
	b := build(t, busyboxOptions(t))
	for name, annotation := range map[string]string{"small": "a", "large": strings.Repeat("a", maxAttachment)} {
		if err := b.Attach(b.Digest, testType, []byte(name), map[string]string{"a": annotation}); err != nil {
			t.Fatal(err)
		}
	}
	backend := registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0)))
	change := func(*v1.IndexManifest) {}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "/referrers/") {
			backend.ServeHTTP(w, r)
			return
		}
		answer, list := httptest.NewRecorder(), v1.IndexManifest{}
		backend.ServeHTTP(answer, r)
		if err := json.Unmarshal(answer.Body.Bytes(), &list); err != nil {
			t.Error(err)
		}
		slices.SortFunc(list.Manifests, func(a, b v1.Descriptor) int { return cmp.Compare(a.Size, b.Size) })
		change(&list)
		w.Header().Set("Content-Type", string(types.OCIImageIndex))
		_ = json.NewEncoder(w).Encode(list) // a client that refuses it closes the connection
	}))
	t.Cleanup(server.Close)
	ref := strings.TrimPrefix(server.URL, "http://") + "/a:1"
	if _, err := Push(t.Context(), b, ref, nil); err != nil {
		t.Fatal(err)
	}
	repeat := func(count int) func(*v1.IndexManifest) {
		return func(l *v1.IndexManifest) { l.Manifests = slices.Repeat(l.Manifests[:1], count) }
	}
	for name, c := range map[string]struct {
		change func(*v1.IndexManifest)
		count  int
		failed bool
	}{
		"a large manifest":               {func(*v1.IndexManifest) {}, 1, false},
		"a larger manifest than it says": {func(l *v1.IndexManifest) { l.Manifests[1].Size = 1 }, 1, false},
		"a large entry":                  {func(l *v1.IndexManifest) { l.Manifests[0].Size = maxAttachment + 1 }, 0, false},
		"an entry of the limit":          {func(l *v1.IndexManifest) { l.Manifests[0].Size = maxAttachment }, 1, false},
		"another type":                   {func(l *v1.IndexManifest) { l.Manifests[0].MediaType = "text/plain" }, 0, false},
		"as many as may be":              {repeat(maxAttachments), maxAttachments, false},
		"one more":                       {repeat(maxAttachments + 1), 0, true},
	} {
		change = c.change
		s, err := Open(t.Context(), Source{Reference: ref})
		if err != nil {
			t.Fatal(err)
		}
		documents, err := collect(s.Documents(t.Context(), s.Digest, testType, 100))
		if len(documents) != c.count || (err != nil) != c.failed ||
			err != nil && !strings.Contains(err.Error(), "the limit is") {
			t.Errorf("%s: got %d documents, %v", name, len(documents), err)
		}
	}
}

func TestSizesOfDocumentsAreLimited(t *testing.T) {
	b := build(t, busyboxOptions(t))
	if err := b.Attach(b.Digest, testType, []byte("12345678"), nil); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "layout")
	if err := WriteLayout(t.Context(), b, "localhost/a:1", dir); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Source{Layout: dir})
	if err != nil {
		t.Fatal(err)
	}
	for limit, count := range map[int64]int{7: 0, 8: 1} {
		documents, err := collect(s.Documents(t.Context(), s.Digest, testType, limit))
		if err != nil || len(documents) != count {
			t.Errorf("limit %d: got %q, %v", limit, documents, err)
		}
	}
	layer := func(size int64) *v1.Manifest {
		return &v1.Manifest{Layers: []v1.Descriptor{{MediaType: testType, Size: size}}}
	}
	for size, accepted := range map[int64]bool{-1: false, 0: true} {
		if _, ok := onlyLayer(layer(size), testType); ok != accepted {
			t.Errorf("a layer of %d bytes is accepted: %t", size, ok)
		}
	}
}

// The index in a layout and the images in it are counted together.
func TestBaseWithManyManifestsIsRefused(t *testing.T) {
	for count, accepted := range map[int]bool{maxManifests - 1: true, maxManifests: false} {
		dir := filepath.Join(t.TempDir(), "layout")
		if err := WriteLayout(t.Context(), attachedImage(t), "localhost/a:1", dir); err != nil {
			t.Fatal(err)
		}
		changeIndex(t, dir, func(m *v1.IndexManifest) { m.Manifests = slices.Repeat(m.Manifests[:1], count) })
		found, err := layoutCandidates(dir)
		if (err == nil) != accepted || accepted && len(found) != count {
			t.Errorf("%d manifests: got %d, %v", count, len(found), err)
		}
	}
}
