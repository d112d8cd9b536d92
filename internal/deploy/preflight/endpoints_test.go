package preflight

import (
	"encoding/pem"
	"errors"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestEndpointChecksAddressAndCertificate(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	address := server.Listener.Addr().String()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	nothing := closed.Addr().String()
	for name, tc := range map[string]struct {
		endpoint Endpoint
		want     Status
		detail   string
	}{
		"answers": {Endpoint{Address: address, ServerName: "example.com", CA: authority, Chosen: true},
			Passed, ""},
		"other name": {Endpoint{Node: "a", Address: address, ServerName: "kubernetes.default.svc",
			CA: authority, Chosen: true}, Failed, "not kubernetes.default.svc"},
		"other name, not chosen": {Endpoint{Node: "a", Address: address, ServerName: "kubernetes.default.svc",
			CA: authority}, Warned, "not kubernetes.default.svc"},
		"other authority": {Endpoint{Address: address, ServerName: "example.com", Chosen: true}, Failed,
			"unknown authority"},
		"not reached": {Endpoint{Node: "a", Address: nothing, ServerName: "example.com", CA: authority,
			Chosen: true}, Unknown, "refused"},
		"not reached, local": {Endpoint{Address: nothing, ServerName: "example.com", CA: authority, Chosen: true,
			Local: true}, Failed, "refused"},
		"not reached, local, given": {Endpoint{Address: nothing, ServerName: "example.com", CA: authority, Local: true},
			Warned, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &preflight{Options: Options{Endpoints: []Endpoint{tc.endpoint}}}
			got, err := RunAll(t.Context(), p.endpointChecks(), nil)
			if len(got) != 1 || got[0].Status != tc.want || !strings.Contains(got[0].Detail, tc.detail) {
				t.Errorf("got %+v, want %s with %q", got, tc.want, tc.detail)
			}
			var failed *FailedError
			if errors.As(err, &failed) != (tc.want == Failed) {
				t.Errorf("got %v", err)
			}
			if tc.want == Failed && got[0].Hint == "" {
				t.Error("no hint")
			}
		})
	}
}
