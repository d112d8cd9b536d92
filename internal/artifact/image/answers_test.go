package image

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// A registry chooses what it answers.
func TestLargeAnswersOfRegistriesAreRefused(t *testing.T) {
	const digest = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
	list := strings.Repeat("{},", 8<<20)
	for name, c := range map[string]struct {
		manifest, want string
	}{
		"manifest": {`{"schemaVersion":2,"layers":[` + list + "{}]}", "has more than 1048576 bytes"},
		"configuration": {`{"schemaVersion":2,"config":{"size":1073741824,"digest":"` + digest + `"}}`,
			"the configuration has 1073741824 bytes, the limit is 1048576"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
				switch {
				case strings.Contains(r.URL.Path, "/manifests/"):
					fmt.Fprint(w, c.manifest)
				case strings.Contains(r.URL.Path, "/blobs/"):
					_, _ = io.CopyN(w, zeroReader{}, 1<<30) // the client has read enough
				}
			}))
			t.Cleanup(server.Close)
			src := Source{Reference: strings.TrimPrefix(server.URL, "http://") + "/x:1"}
			for call, read := range map[string]func() error{
				"open": func() error {
					_, err := Open(t.Context(), src)
					return err
				},
				"program": func() error {
					_, err := ExtractProgram(t.Context(), src, nil, "linux/amd64", filepath.Join(t.TempDir(), "p"))
					return err
				},
			} {
				var err error
				used := allocated(func() { err = read() })
				if err == nil || !strings.Contains(err.Error(), c.want) || used > 32<<20 {
					t.Errorf("%s: got %v, allocated %d bytes", call, err, used)
				}
			}
		})
	}
}
