package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/rogpeppe/go-internal/testscript"
)

// keypair NAME writes a key for --sign-key to NAME.pem and its public key to NAME.pub.
func writeKeyPair(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: keypair NAME")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	ts.Check(err)
	for file, block := range map[string]*pem.Block{
		".pem": {Type: "PRIVATE KEY", Bytes: private}, ".pub": {Type: "PUBLIC KEY", Bytes: public},
	} {
		ts.Check(os.WriteFile(ts.MkAbs(args[0]+file), pem.EncodeToMemory(block), 0o600))
	}
}

// registry starts an empty registry, in REGISTRY.
func startRegistry(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: registry")
	}
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true),
		registry.Logger(log.New(io.Discard, "", 0))))
	ts.Defer(server.Close)
	ts.Setenv("REGISTRY", strings.TrimPrefix(server.URL, "http://"))
}
