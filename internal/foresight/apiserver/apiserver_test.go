package apiserver

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

func TestCertificateIsReadAgainUntilItIsComplete(t *testing.T) {
	served := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(served.Close)
	at, err := url.Parse(served.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{o: Options{Dir: t.TempDir()}}
	if s.port, err = strconv.Atoi(at.Port()); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(s.o.Dir, "certs"), 0o700); err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: served.Certificate().Raw})
	for _, length := range []int{0, len(certificate) / 2, len(certificate)} {
		if err := os.WriteFile(s.Config().CAFile, certificate[:length], 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.ready(t.Context()); (err == nil) != (length == len(certificate)) {
			t.Errorf("with %d of %d bytes: %v", length, len(certificate), err)
		}
	}
}
