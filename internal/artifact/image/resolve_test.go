package image

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
)

// pushText pushes an image whose scheduler ends in text.
func pushText(t *testing.T, ref, text string) *Built {
	t.Helper()
	o := busyboxOptions(t)
	source := o.Files["linux/amd64"][0].Source
	writeText(t, source, readText(t, source)+text)
	b := build(t, o)
	if _, err := Push(t.Context(), b, ref, nil); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestResolvedNameStaysTheSameImageWhenTheTagMoves(t *testing.T) {
	registry := newRegistry(t)
	for _, c := range []struct{ name, tagged string }{{"team/s:v1", "team/s:v1"}, {
		"team/untagged", "team/untagged:latest"}} {
		ref := registry + "/" + c.name
		first := pushText(t, registry+"/"+c.tagged, "first")
		pinned, architectures, err := Resolve(t.Context(), ref, authn.DefaultKeychain)
		if err != nil || pinned != ref+"@"+first.Digest || !slices.Equal(architectures, []string{"amd64"}) {
			t.Fatalf("got %q, %q, %v", pinned, architectures, err)
		}
		pushText(t, registry+"/"+c.tagged, "second")
		if again, _, err := Resolve(t.Context(), pinned, nil); err != nil || again != pinned {
			t.Errorf("got %q, %v", again, err)
		}
		to := filepath.Join(t.TempDir(), "program")
		if err := ExtractFile(t.Context(), Source{Reference: pinned}, SchedulerPath, "linux/amd64", to); err != nil {
			t.Fatal(err)
		}
		if text := readText(t, to); !strings.HasSuffix(text, "first") {
			t.Errorf("%s: read another image: …%s", pinned, text[len(text)-6:])
		}
	}
	_, _, err := Resolve(t.Context(), registry+"/team/none:v1", nil)
	wantError(t, err, false, "read the digest of", "not found")
}
