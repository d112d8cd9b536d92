package sign

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

const digest = "0000000000000000000000000000000000000000000000000000000000000001"

func newKey(t testing.TB) *PrivateKey {
	t.Helper()
	return parsed(t, encoded(t, generate(t, elliptic.P256())))
}

func generate(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// encoded returns a private key in PKCS#8.
func encoded(t testing.TB, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func parsed(t testing.TB, text []byte) *PrivateKey {
	t.Helper()
	key, err := ParsePrivateKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A statement may name an image by another hash only, or by none.
func TestAStatementWithoutADigestIsAboutNoImage(t *testing.T) {
	for _, subjects := range [][]Subject{nil, {{}}, {{Name: "image", Digest: map[string]string{"sha512": digest}}}} {
		s := &Statement{Type: statementType, PredicateType: Signature, Subject: subjects}
		for _, asked := range []string{"", digest} {
			if s.IsAbout(Signature, asked) {
				t.Errorf("%v is about the image with the digest %q", subjects, asked)
			}
		}
	}
}

func TestSignedStatementIsVerified(t *testing.T) {
	key := newKey(t)
	want := NewStatement(Signature, digest, nil)
	text, err := Sign(t.Context(), key, want)
	if err != nil {
		t.Fatal(err)
	}
	public, err := ParsePublicKey([]byte(key.Public().PEM()))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Verify(public, text)
	if err != nil {
		t.Fatal(err)
	}
	if !got.IsAbout(Signature, digest) || got.IsAbout(SBOM, digest) || got.IsAbout(Signature, strings.Repeat("0", 64)) ||
		got.IsAbout(Signature, "") {
		t.Errorf("the statement is about %+v", got)
	}
	again, err := Sign(t.Context(), key, want)
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("the second signature differs: %v", err)
	}
}

func TestBundleThatIsNotSignedByTheKeyIsRefused(t *testing.T) {
	key, other := newKey(t), newKey(t)
	text, err := Sign(t.Context(), key, NewStatement(Signature, digest, nil))
	if err != nil {
		t.Fatal(err)
	}
	change := func(edit func(*bundle)) []byte {
		b := bundle{}
		if err := json.Unmarshal(text, &b); err != nil {
			t.Fatal(err)
		}
		edit(&b)
		changed, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		return changed
	}
	for name, c := range map[string]struct {
		key  *PublicKey
		text []byte
		want string
	}{
		"another key": {other.Public(), text, "but names the key " + key.Public().Hint()},
		"another payload": {key.Public(), change(func(b *bundle) { b.DSSEEnvelope.Payload[20]++ }),
			"not signed by the key " + key.Public().Hint()},
		"a hint that is no digest": {other.Public(), change(func(b *bundle) {
			b.VerificationMaterial.PublicKey.Hint = "AAAA"
		}), "not signed by the key " + other.Public().Hint()},
		"a hint with other text": {other.Public(), change(func(b *bundle) {
			b.VerificationMaterial.PublicKey.Hint = "run this"
		}), "not signed by the key " + other.Public().Hint()},
		"no hint": {other.Public(), change(func(b *bundle) { b.VerificationMaterial.PublicKey = nil }),
			"not signed by the key " + other.Public().Hint()},
		"another signature": {key.Public(), change(func(b *bundle) { b.DSSEEnvelope.Signatures[0].Sig[9]++ }),
			"not signed by"},
		"no signature": {key.Public(), change(func(b *bundle) { b.DSSEEnvelope.Signatures = nil }), "one signature, got 0"},
		"two signatures": {key.Public(), change(func(b *bundle) {
			b.DSSEEnvelope.Signatures = append(b.DSSEEnvelope.Signatures, b.DSSEEnvelope.Signatures[0])
		}), "one signature, got 2"},
		"another payload type": {key.Public(), change(func(b *bundle) { b.DSSEEnvelope.PayloadType = "text/plain" }),
			"payload of type"},
		"another bundle": {key.Public(), change(func(b *bundle) { b.MediaType += "x" }), "read bundle: expected"},
		"no envelope":    {key.Public(), change(func(b *bundle) { b.DSSEEnvelope = nil }), "no dsseEnvelope"},
		"no JSON":        {key.Public(), []byte("{"), "read bundle"},
		"a large file":   {key.Public(), make([]byte, MaxBundle+1), "the limit is"},
	} {
		if s, err := Verify(c.key, c.text); err == nil || s != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, %v, want an error with %q", name, s, err, c.want)
		}
		if err != nil && name != "another key" && strings.Contains(err.Error(), "but names") {
			t.Errorf("%s: got %v, want an error without another key", name, err)
		}
	}
}

func TestBundleUpToTheLimitIsReadAndWritten(t *testing.T) {
	key := newKey(t)
	text, err := Sign(t.Context(), key, NewStatement(Signature, digest, nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(key.Public(), append(text, bytes.Repeat([]byte(" "), MaxBundle-len(text))...)); err != nil {
		t.Errorf("a bundle of the limit: %v", err)
	}
	large := json.RawMessage(`"` + strings.Repeat("x", MaxBundle) + `"`)
	if _, err := Sign(t.Context(), key, NewStatement(SBOM, digest, large)); err == nil ||
		!strings.Contains(err.Error(), "the limit is") {
		t.Errorf("a bundle above the limit: got %v", err)
	}
}

func TestStatementOfAnotherTypeIsRefused(t *testing.T) {
	key := newKey(t)
	s := NewStatement(Signature, digest, nil)
	s.Type = "https://in-toto.io/Statement/v0.1"
	text, err := Sign(t.Context(), key, s)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Verify(key.Public(), text); err == nil || !strings.Contains(err.Error(), "read statement: expected") {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestKeysOfOtherKindsAreRefused(t *testing.T) {
	small, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte("secret")}) }
	for name, c := range map[string]struct {
		text []byte
		want string
	}{
		"RSA":       {encoded(t, small), "expected an ECDSA key on the curve P-256, got a key of rsa"},
		"Ed25519":   {encoded(t, edwards), "got a key of ed25519"},
		"P-384":     {encoded(t, generate(t, elliptic.P384())), "got an ECDSA key on P-384"},
		"encrypted": {block("ENCRYPTED PRIVATE KEY"), "it is encrypted"},
		"encrypted as before": {pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: []byte("secret"),
			Headers: map[string]string{"DEK-Info": "AES-256-CBC,00"}}), "it is encrypted"},
		"cosign's": {block("ENCRYPTED SIGSTORE PRIVATE KEY"), "it is encrypted"},
		"public":   {[]byte(newKey(t).Public().PEM()), "got a public key"},
		"a text":   {[]byte("secret"), "not PEM"},
		"damaged":  {block("PRIVATE KEY"), "cannot be read"},
		"an X.509": {block("CERTIFICATE"), `got "CERTIFICATE"`},
		"empty":    {nil, "not PEM"},
	} {
		_, err := ParsePrivateKey(c.text)
		if !problem.IsInvalid(err) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want an Invalid error with %q", name, err, c.want)
		}
	}
	for name, text := range map[string][]byte{"private": encoded(t, generate(t, elliptic.P256())), "text": []byte("x"),
		"damaged": block("PUBLIC KEY"), "another": block("CERTIFICATE")} {
		if _, err := ParsePublicKey(text); !problem.IsInvalid(err) {
			t.Errorf("%s: got %v, want an Invalid error", name, err)
		}
	}
}

func TestKeyAsOpensslWritesIt(t *testing.T) {
	key := generate(t, elliptic.P256())
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "EC PARAMETERS", Bytes: []byte{6, 1, 1}}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})...)
	if got, want := parsed(t, text).Public().Hint(), parsed(t, encoded(t, key)).Public().Hint(); got != want {
		t.Errorf("the public key is %s, want %s", got, want)
	}
}

// script writes a program that signs with openssl, or fails.
func script(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "signer")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	return file
}

func TestCommandSigns(t *testing.T) {
	key := newKey(t)
	signature, err := key.Sign(t.Context(), encodingDigest([]byte("{}")))
	if err != nil || len(signature) == 0 {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"pub.pem": key.Public().PEM(), "other.pem": newKey(t).Public().PEM()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct{ command, want string }{
		"no such program":   {filepath.Join(dir, "none"), "no such file"},
		"it fails":          {script(t, "echo no access >&2; exit 1\n"), "exit status 1: no access"},
		"no key":            {script(t, "echo x\n"), "not PEM"},
		"no base64":         {script(t, "[ $1 = sign ] && echo '?' || cat "+dir+"/pub.pem"), "expected base64"},
		"another signature": {script(t, "[ $1 = sign ] && echo AAAA || cat "+dir+"/pub.pem"), "does not fit the public key"},
		"no command":        {" ", "names no command"},
		"a long answer":     {script(t, "head -c 65537 /dev/zero\n"), "expected at most 65536 bytes, got 65537"},
	} {
		signer, err := NewCommand(t.Context(), c.command)
		if err == nil {
			_, err = Sign(t.Context(), signer, NewStatement(Signature, digest, nil))
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, c.want)
		}
	}
}

func FuzzVerify(f *testing.F) {
	key := newKey(f)
	text, err := Sign(f.Context(), key, NewStatement(SBOM, digest, json.RawMessage(`{"a":1}`)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"mediaType":"` + BundleType + `","dsseEnvelope":{"payload":"e30=","signatures":[{"sig":"AA=="}]}}`))
	f.Fuzz(func(t *testing.T, bundle []byte) {
		if s, err := Verify(key.Public(), bundle); err == nil && !s.IsAbout(SBOM, digest) {
			t.Errorf("a statement that was never signed is verified: %+v", s)
		}
	})
}

// FuzzStatement searches statements that crash their reader. They are signed here: an image may
// have statements that another program signed with the same key.
func FuzzStatement(f *testing.F) {
	key := newKey(f)
	for _, text := range []string{`{}`, `null`, `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":null}]}`,
		`{"_type":"https://in-toto.io/Statement/v1","predicateType":"` + Signature + `","subject":[{"digest":{"sha256":""}}]}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		signature, err := key.Sign(t.Context(), encodingDigest(payload))
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(bundle{MediaType: BundleType, DSSEEnvelope: &dsseContent{
			Payload: payload, PayloadType: payloadType, Signatures: []dsseSignature{{Sig: signature}}}})
		if err != nil {
			t.Fatal(err)
		}
		if s, err := Verify(key.Public(), text); err == nil && s.Type != statementType {
			t.Errorf("a statement of the type %q is verified", s.Type)
		}
	})
}

// cosign 3 leaves the predicate out; older versions of pmk-sched left it empty.
func TestSignaturesWithoutClaimsSayNothing(t *testing.T) {
	for text, want := range map[string]Claims{
		`{}`: {}, `{"predicate":{}}`: {}, `{"predicate":null}`: {},
		`{"predicate":{"name":"r/x","release":"v1.24.3","more":1}}`: {Name: "r/x", Release: "v1.24.3"},
	} {
		s := &Statement{}
		if err := json.Unmarshal([]byte(text), s); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Claims(); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
	if _, err := (&Statement{Predicate: []byte(`"x"`)}).Claims(); err == nil {
		t.Error("a predicate that is not an object is accepted")
	}
}
