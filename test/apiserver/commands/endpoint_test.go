//go:build linux

package commands

import (
	"net/url"
	"testing"
)

// port returns the port of the API server. In these tests the API servers of all nodes use it.
func port(t *testing.T) string {
	t.Helper()
	host, err := url.Parse(server.Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	return host.Port()
}
