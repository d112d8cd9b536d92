package pack

import (
	"io"
	"log"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
)

// pushIndex pushes an index of images for platforms, as `pmk-sched build --platform` does.
func pushIndex(t *testing.T, ref string, platforms ...v1.Platform) string {
	t.Helper()
	var index v1.ImageIndex = empty.Index
	for _, p := range platforms {
		img, err := random.Image(64, 1)
		if err != nil {
			t.Fatal(err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &p}})
	}
	tag, err := name.ParseReference(ref, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(tag, index); err != nil {
		t.Fatal(err)
	}
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func TestLocatedImagesHaveTheDigestWhereNodesPull(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	tag := host + "/s:v1"
	pinned := tag + "@" + pushIndex(t, tag, v1.Platform{OS: "linux", Architecture: "arm64", Variant: "v8"},
		v1.Platform{OS: "linux", Architecture: "amd64"}, v1.Platform{OS: "windows", Architecture: "386"},
		v1.Platform{OS: "unknown", Architecture: "unknown"})
	moved := tag + "@sha256:" + strings.Repeat("0", 64)
	for _, c := range []struct {
		reference, pull, want, missing string
		known                          bool // the architectures
	}{
		{tag, "", pinned, "", true},
		{tag, "Always", pinned, "", true},
		{pinned, "", pinned, "", true},
		{tag, "Never", tag, "", false},
		{"localhost/s:v1", "", "localhost/s:v1", "", false},
		{host + "/s:none", "", host + "/s:none", "image " + host + "/s:none is ", false},
		{host + "/none:v1", "IfNotPresent", host + "/none:v1", "in registry " + host, false},
		{moved, "", moved, "in registry " + host, false},
	} {
		got, err := Locate(t.Context(), LocateRequest{Reference: c.reference, PullPolicy: c.pull})
		if err != nil || got.Name != c.want || c.known != slices.Equal(got.Architectures, []string{"amd64", "arm64"}) {
			t.Errorf("%s, pull policy %q: got %+v, %v", c.reference, c.pull, got, err)
		}
		if (got.Missing == nil) != (c.missing == "") ||
			got.Missing != nil && !strings.Contains(got.Missing.Error(), c.missing) {
			t.Errorf("%s, pull policy %q: missing: %v", c.reference, c.pull, got.Missing)
		}
	}
	if _, err := Locate(t.Context(), LocateRequest{Reference: "No:Such:Name"}); err == nil {
		t.Error("an invalid name was accepted")
	}
}

// TestAnImageIsNotMissingBecauseItsRegistryIsUnreachable has a registry that another machine may
// reach.
func TestAnImageIsNotMissingBecauseItsRegistryIsUnreachable(t *testing.T) {
	server := httptest.NewServer(nil)
	host := strings.TrimPrefix(server.URL, "http://")
	server.Close()
	for reference, warns := range map[string]bool{
		host + "/s:v1": true, host + "/s@sha256:" + strings.Repeat("0", 64): false,
	} {
		var warnings []string
		got, err := Locate(t.Context(), LocateRequest{Reference: reference,
			Warn: func(text string) { warnings = append(warnings, text) }})
		if err != nil || got.Missing != nil || got.Name != reference || len(warnings) > 0 != warns {
			t.Errorf("got %+v, %v, warnings %q", got, err, warnings)
		}
	}
}

// TestAnImageForOneMachineIsMissingOnlyWhereItsPodsRun asks the containerd of this machine, if
// there is one.
func TestAnImageForOneMachineIsMissingOnlyWhereItsPodsRun(t *testing.T) {
	used, err := image.ContainerdHasImages(t.Context())
	for _, r := range []LocateRequest{
		{Reference: "localhost/none:v1"}, {Reference: "localhost/none:v1", Here: true},
		{Reference: "registry.example.com/none:v1", PullPolicy: "Never", Here: true},
	} {
		got, failed := Locate(t.Context(), r)
		if failed != nil || (got.Missing != nil) != (err == nil && used && r.Here) {
			t.Errorf("%+v: got %+v, %v", r, got, failed)
		}
	}
}
