//go:build linux

package controller

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// lateWatches returns the address of a proxy of the API server that passes the events of the
// watches of a resource only after some time.
func lateWatches(t *testing.T, resource string, by time.Duration) string {
	t.Helper()
	pass := server.Proxy(t)
	pass.ModifyResponse = func(r *http.Response) error {
		if q := r.Request.URL; strings.HasSuffix(q.Path, resource) && q.Query().Has("watch") {
			r.Body = &late{r.Body, by}
		}
		return nil
	}
	proxy := httptest.NewServer(pass)
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
	})
	return proxy.URL
}

// late is a body that is read some time after it came.
type late struct {
	io.ReadCloser
	by time.Duration
}

func (l *late) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	time.Sleep(l.by)
	return n, err
}
