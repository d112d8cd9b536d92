package apply

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// endlessSecrets is an API server with nothing but a list of Secrets that does not end: each page
// has n Secrets with that much of annotations. pages counts them.
func endlessSecrets(t *testing.T, n, annotations int) (c *Client, pages *atomic.Int64) {
	t.Helper()
	pages = &atomic.Int64{}
	item := `{"metadata":{"name":"a","namespace":"n","annotations":{"a":"` + strings.Repeat("a", annotations) + `"}}}`
	page := `{"kind":"%s","apiVersion":"%s","metadata":{"continue":"more"},"items":[` +
		strings.TrimSuffix(strings.Repeat(item+",", n), ",") + `]}`
	answers := map[string]string{
		"/api":  `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
		"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[` +
			`{"name":"secrets","namespaced":true,"kind":"Secret","verbs":["list"]}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch answer, ok := answers[r.URL.Path]; {
		case ok:
			fmt.Fprint(w, answer)
		case r.URL.Path == "/api/v1/secrets" || r.URL.Path == "/api/v1/namespaces/n/secrets":
			pages.Add(1)
			if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList") {
				fmt.Fprintf(w, page, "PartialObjectMetadataList", "meta.k8s.io/v1")
			} else {
				fmt.Fprintf(w, page, "SecretList", "v1")
			}
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	c, err := New(&rest.Config{Host: server.URL}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c, pages
}

// Users who may write Secrets in a namespace can add any number with the labels of pmk-sched, and
// 256 KiB of annotations each.
func TestListsOfObjectsAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		n, annotations int
		read           func(context.Context, *Client) error
		pages          int64
	}{
		"revisions": {n: 250, pages: 41, read: func(ctx context.Context, c *Client) error {
			_, err := c.Revisions(ctx, "n", "a")
			return err
		}},
		"names": {n: 250, pages: 41, read: func(ctx context.Context, c *Client) error {
			_, err := c.DeployedNames(ctx, "n")
			return err
		}},
		"objects": {n: 25, pages: 401, read: func(ctx context.Context, c *Client) error {
			_, err := c.Owned(ctx, "a", "n")
			return err
		}},
		"annotations": {n: 25, annotations: 256 << 10, pages: 11, read: func(ctx context.Context, c *Client) error {
			_, err := c.Owned(ctx, "a", "n")
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			client, pages := endlessSecrets(t, c.n, c.annotations)
			err := c.read(t.Context(), client)
			if err == nil || !strings.Contains(err.Error(), "are too large to list: more than 64 MiB, or more than 10000 objects") {
				t.Errorf("got %v", err)
			}
			if pages.Load() != c.pages {
				t.Errorf("%d pages were read, want %d", pages.Load(), c.pages)
			}
		})
	}
}
