package image

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

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
